"""Parts as LaTeX: texts as comments, tables as floats with booktabs, special characters escaped."""

from collections.abc import Iterator, Sequence
from typing import Any

from jobs.output.cells import Measured, Part, Table, cell, on_one_line

# As commands, to keep ligatures and babel's shorthands from changing them.
_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\char34{}",
    "`": r"\textasciigrave{}", "'": r"\char39{}", "-": r"{-}", "[": "{[}", "]": "{]}", "*": "{*}",
}  # fmt: skip


def latex(parts: Sequence[Part]) -> str:
    return "".join(f"{line}\n" for part in parts for line in _lines(part))


def escaped(text: str) -> str:
    return "".join(_SPECIAL.get(sign, sign) for sign in on_one_line(text))


def _lines(part: Part) -> Iterator[str]:
    if not isinstance(part, Table):
        yield f"% {on_one_line(part if isinstance(part, str) else part.text)}"
        return
    names = part.filled()
    yield r"\begin{table}"
    yield r"\centering\small\setlength{\tabcolsep}{4pt}"
    if part.caption:
        yield f"\\caption{{{escaped(part.caption)}}}"
        yield f"\\label{{{part.label}}}"
    kinds = "".join("l" if part.is_left(name) else "r" for name in names)
    yield f"\\begin{{tabular}}{{@{{}}{kinds}@{{}}}}"
    yield r"\toprule"
    yield _row(_heading(name, part.shared_n(name)) for name in names)
    yield r"\midrule"
    for row in part.rows:
        yield _row(_cell(row[name], part, name) for name in names)
    yield r"\bottomrule"
    yield r"\end{tabular}"
    yield r"\end{table}"


def _row(cells: Iterator[str]) -> str:
    return f"{' & '.join(cells)} \\\\"


def _heading(name: str, shared_n: int | None) -> str:
    text = "$n$" if name == "n" else escaped(name)
    return text if shared_n is None else f"{text} ($n$={shared_n})"


def _cell(value: Any, table: Table, name: str) -> str:
    if not isinstance(value, Measured) or value.value is None:
        text = cell(value)
        return "--" if text == "-" else escaped(text)
    found = escaped(cell(value.value))
    if value.is_best and table.marks != "none":
        found = f"\\textbf{{{found}}}" if table.marks == "bold" else f"{found}$^{{*}}$"
    over = ", ".join(value.is_over(table.shared_n(name))).replace("n=", "$n$=")
    found += f" ({over})" if over else ""
    return f"{found} {{\\scriptsize{value.small}}}" if value.small else found
