"""Parts as LaTeX: texts as comments, tables with booktabs, every special character escaped."""

from collections.abc import Iterator, Sequence
from typing import Any

from jobs.output.cells import Measured, Part, Table, cell, on_one_line

# As commands, so that neither ligatures nor the shorthands of babel's languages change them.
_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\char34{}",
    "`": r"\textasciigrave{}", "'": r"\char39{}", "-": r"{-}", "[": "{[}", "]": "{]}", "*": "{*}",
}  # fmt: skip


def escaped(text: str) -> str:
    """The text as LaTeX prints it, on one line."""
    return "".join(_SPECIAL.get(sign, sign) for sign in on_one_line(text))


def latex(parts: Sequence[Part]) -> str:
    """Headings and paragraphs as comments, a line each; a tabular per table, without the columns
    that have no value."""
    return "".join(f"{line}\n" for part in parts for line in _lines(part))


def _lines(part: Part) -> Iterator[str]:
    if not isinstance(part, Table):
        yield f"% {on_one_line(part if isinstance(part, str) else part.text)}"
        return
    names = part.filled()
    yield f"\\begin{{tabular}}{{{''.join('l' if part.is_left(name) else 'r' for name in names)}}}"
    yield r"\toprule"
    yield _row(_heading(name, part.shared_n(name)) for name in names)
    yield r"\midrule"
    for row in part.rows:
        yield _row(_cell(row[name], part.shared_n(name)) for name in names)
    yield r"\bottomrule"
    yield r"\end{tabular}"


def _row(cells: Iterator[str]) -> str:
    return f"{' & '.join(cells)} \\\\"


def _heading(name: str, shared_n: int | None) -> str:
    return ("$n$" if name == "n" else escaped(name)) + _over(shared_n)


def _over(n: int | None) -> str:
    return "" if n is None else f" ($n$={n})"


def _cell(value: Any, shared_n: int | None) -> str:
    """A best value is bold, what is small in brackets."""
    if not isinstance(value, Measured) or value.value is None:
        return "--" if cell(value) == "-" else escaped(cell(value))
    mean = cell(value.value)
    mean = f"\\textbf{{{mean}}}" if value.is_best else mean
    over = ", ".join(value.is_over(shared_n)).replace("n=", "$n$=")
    small = f" {{\\scriptsize{value.small}}}" if value.small else ""
    return mean + (f" ({over})" if over else "") + small
