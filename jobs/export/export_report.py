"""Exports the table of a run as CSV, or as a paper prints it in LaTeX or Markdown: with printed
names, scores before reading and cost, and a caption that explains the numbers."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from jobs.config.options import ReadOptions
from jobs.output.cells import Marks, Measured, Part, Table, cell, counted, on_one_line
from jobs.output.formats import csv_text
from jobs.output.print_tables import warn_incomplete
from jobs.report.columns import COST_COLUMNS, COUNTS, PAPER, named, read_names, with_columns
from jobs.report.render import ANSWERED, REPEATED, report_page, score_table
from jobs.report.report import Report, Row, make_report
from pipeline.core.errors import UsageError

_MARKS: dict[str, Marks] = {"bold": "bold", "stars": "stars", "none": "none"}
_SAYS = {"bold": "Bold", "stars": "*"}
_IN_NO_LABEL = re.compile(r"[^A-Za-z0-9:._-]")
_HEADINGS = {"method": "Method", "by": "Group"}


def exported_report(
    options: ReadOptions, with_intervals: bool, warn: Callable[[str], None]
) -> tuple[str, int]:
    """The report in `format=`, of the methods whose names begin with `method=`; and the number of
    its rows. `warn` gets a line if the run is not complete. Raises UsageError."""
    form = options.format or "csv"
    if form not in FORMATS:
        raise UsageError(f"format={form}: no such format; there are {', '.join(FORMATS)}")
    for key, forms in _ONLY_OF.items():
        if getattr(options, key) is not None and form not in forms:
            raise UsageError(f"{key}= is for format={' and '.join(forms)}; leave it out")
    report = make_report(options)
    warn_incomplete(report.run, report.inputs, warn)
    return FORMATS[form](report, options, with_intervals), len(report.rows)


def _csv(report: Report, options: ReadOptions, with_intervals: bool) -> str:
    """A column per measure with all digits, and the number of answers behind each mean; with
    intervals also their ends, the mean over answered questions and the sd over repeats. Names are
    canonical."""
    counts = [column.measure for column in COUNTS] if options.columns is None else []
    shown = with_columns(report, options.columns, None)
    rows = [dict(_cells(row, shown, with_intervals, counts)) for row in report.rows]
    return csv_text(rows, list(rows[0]) if rows else ["method"])


def _cells(
    row: Row, report: Report, with_intervals: bool, counts: Sequence[str]
) -> Iterator[tuple[str, Any]]:
    yield "method", row.method
    if any(other.by is not None for other in report.rows):
        yield "group", row.by
    yield "n", row.counts.get("n")
    for column in report.columns:
        name, mean = column.measure, row.means.get(column.measure)
        yield name, mean.mean if mean else row.counts.get(name)
        yield f"{name}_n", mean.n if mean else None
        if with_intervals and column.has_interval:
            yield f"{name}_low", mean.low if mean else None
            yield f"{name}_high", mean.high if mean else None
            yield f"{name}_answered", mean.answered_mean if mean else None
            yield f"{name}_sd_over_repeats", mean.sd if mean else None
    for name in counts:
        yield name, row.counts.get(name)


def _latex(report: Report, options: ReadOptions, with_intervals: bool) -> str:
    foot = report.foot
    notes = [f"gistmill, run {report.run}, corpus {foot['corpus']}, engine {foot['engine']}"]
    notes.append(r"Needs \usepackage{booktabs}.")
    if report.inputs["not_done"]:
        of = "{not_done} of {planned} inputs are not done".format(**report.inputs)
        notes.append(f"INCOMPLETE: {of}.")
    return latex([*notes, _paper_table(report, options, with_intervals)])


def _markdown(report: Report, options: ReadOptions, with_intervals: bool) -> str:
    return report_page([_paper_table(report, options, with_intervals)]) + "\n"


def _paper_table(report: Report, options: ReadOptions, with_intervals: bool) -> Table:
    """The table of the columns that `columns=` names, by default all and the cost. Raises
    UsageError for unusable `columns`, `names`, `marks` or `label`, and for a run without
    methods."""
    marks = options.marks or "bold"
    if marks not in _MARKS:
        raise UsageError(f"marks={marks}: no such marks; there are {', '.join(_MARKS)}")
    if _IN_NO_LABEL.search(options.label or ""):
        raise UsageError(f"label={options.label}: write letters, digits and any of : . _ -")
    if not report.rows:
        raise UsageError(f"run={report.run} has no methods; gistmill report shows its memories")
    names = read_names(options.names or PAPER, report.foot.get("plugins"))
    shown = named(with_columns(report, options.columns, names, COST_COLUMNS), names)
    table = score_table(shown, with_intervals)
    rows = [{_HEADINGS.get(k, k): value for k, value in row.items()} for row in table.rows]
    made = replace(
        table,
        rows=rows,
        left=["Group"],
        label=options.label or f"tab:{report.run}",
        marks=_MARKS[marks],
    )
    text = options.caption or " ".join(_caption(made, shown, options, with_intervals))
    return replace(made, caption=text)


def _caption(
    table: Table, report: Report, options: ReadOptions, with_intervals: bool
) -> Iterator[str]:
    means = [value for row in table.rows for value in row.values() if isinstance(value, Measured)]
    corpus = report.foot["corpus"].rpartition(" ")[0]
    documents = counted(report.memory["documents"], "document")
    chosen = f", where {options.where}" if options.where else ""
    chosen += f", by {options.by}" if options.by else ""
    yield f"{corpus}, {_questions(report)} about {documents}{chosen}."
    yield "Means over all answers; a problem counts 0."
    if any(mean.n != mean.of for mean in means):
        yield "(n=...): over so many answers, those that have such a value."
    if any(mean.answered not in (None, mean.n) for mean in means):
        yield ANSWERED
    if table.marks != "none" and any(mean.is_best for mean in means):
        yield f"{_SAYS[table.marks]}: {table.about_best.removeprefix('*: ')}"
    if with_intervals:
        yield "In brackets: 95% interval over documents (cluster bootstrap)."
    if any(" sd " in mean.small for mean in means):
        yield "sd: standard deviation of the repeats' means (n - 1)."


def _questions(report: Report) -> str:
    repeats = report.foot["repeats"]
    asked: Counter[str] = Counter()
    for row in report.rows:
        asked[row.method] += int(row.counts.get("n") or 0) // repeats
    found = sorted({*asked.values()})
    least = "" if len(found) == 1 else f"{found[0]} to "
    again = f", {REPEATED[report.foot['repeat_from']]}" if repeats > 1 else ""
    often = f" ({repeats} repeats{again})" if repeats > 1 else ""
    return f"{least}{counted(found[-1], 'question')}{often}"


_PAPER = ("latex", "markdown")
_ONLY_OF = {"names": _PAPER, "caption": _PAPER, "marks": _PAPER, "label": ("latex",)}
FORMATS: Mapping[str, Callable[[Report, ReadOptions, bool], str]] = {
    "csv": _csv,
    "latex": _latex,
    "markdown": _markdown,
}


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
