"""The table of a run as a paper prints it: printed names, scores before reading and cost, a caption
that says what the numbers are."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from jobs.config.options import ReadOptions
from jobs.output.cells import Marks, Measured, Table, counted
from jobs.report.columns import COST_COLUMNS, with_columns
from jobs.report.names import PAPER, named, read_names
from jobs.report.render import ANSWERED, REPEATED, score_table
from jobs.report.report import Report
from pipeline.core.errors import UsageError

_MARKS: dict[str, Marks] = {"bold": "bold", "stars": "stars", "none": "none"}
_SAYS = {"bold": "Bold", "stars": "*"}
_IN_NO_LABEL = re.compile(r"[^A-Za-z0-9:._-]")
_HEADINGS = {"method": "Method", "by": "Group"}


def paper_table(report: Report, options: ReadOptions, with_intervals: bool) -> Table:
    """The table of the columns that `columns=` names, by default all and the cost. Raises
    UsageError for `columns`, `names`, `marks` or a `label` that cannot be used, and for a run
    without methods."""
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
    """Corpus and number of questions, the answers that means are over, marks and brackets."""
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
    """The number of questions that methods were asked, over all groups, and how often."""
    repeats = report.foot["repeats"]
    asked: Counter[str] = Counter()
    for row in report.rows:
        asked[row.method] += int(row.counts.get("n") or 0) // repeats
    found = sorted({*asked.values()})
    least = "" if len(found) == 1 else f"{found[0]} to "
    again = f", {REPEATED[report.foot['repeat_from']]}" if repeats > 1 else ""
    often = f" ({repeats} repeats{again})" if repeats > 1 else ""
    return f"{least}{counted(found[-1], 'question')}{often}"
