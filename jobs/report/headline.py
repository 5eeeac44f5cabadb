"""The report on a terminal: the headline, one table of scores that fits a screen, and the parts of
the whole report by the names of its groups of columns."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from jobs.audit.judge_audit import audit_parts
from jobs.output.cells import Heading, Measured, Part, Table, counted
from jobs.output.terminal import fitted_to_terminal
from jobs.report.columns import COST, READING, SCORES, group_of
from jobs.report.render import (
    memory_parts,
    notes,
    score_parts,
    score_value,
    spread_parts,
    stage_parts,
)
from jobs.report.report import Report, Row
from jobs.report.show_costs import by_method, cost_parts
from jobs.statistics.means import LEAST_DOCUMENTS

GROUPS = {group.lower(): group for group in (SCORES, READING, COST)}
"""The groups by the names that `--only` takes."""
_LINES, _WIDTH = 24, 80  # of a screen
_MOST_FINDINGS = 3
_BEST = "*: the highest mean, and those that do not differ significantly from it."
_MORE = "More: gistmill report --all, or --only scores, reading or cost."
_NO_INTERVALS = f"No intervals, as there are fewer than {LEAST_DOCUMENTS} documents."


def headline_parts(report: Report, baseline: str | None = None) -> list[Part]:
    """The scores of every method in one table, each as far as it fits, the main ones first and with
    their 95% intervals; `answered` is how many of the method's answers have no problem. Where all
    would take more than 24 lines of 80 columns, the `baseline` and the best ones."""
    ranked = _ranked(report, baseline)
    for number in range(min(len(ranked), _LINES), 1, -1):
        parts = _parts(report, ranked[:number])
        if len(fitted_to_terminal(parts, _WIDTH).splitlines()) <= _LINES:
            return parts
    return _parts(report, ranked[:1])


def _ranked(report: Report, baseline: str | None) -> list[Row]:
    """The rows in the order in which they are kept: those of the baseline, of methods with a mark,
    and of others by the main score."""
    means: dict[str, list[float]] = {}
    for row in report.rows:
        found = (row.means[name].mean for name in report.main[:1] if name in row.means)
        means.setdefault(row.method, []).extend(value for value in found if value is not None)
    marked = {row.method for row in report.rows if row.best}

    def order(row: Row) -> tuple[bool, bool, float]:
        own = means[row.method]
        mean = sum(own) / len(own) if own else float("-inf")
        return row.method != baseline, row.method not in marked, -mean

    return sorted(report.rows, key=order)


def _parts(report: Report, kept: Sequence[Row]) -> list[Part]:
    """The headline with the rows that are kept, in the report's order."""
    hidden = [row for row in report.rows if row not in kept]
    shown = replace(report, rows=tuple(row for row in report.rows if row in kept))
    table = [_table(shown)] if report.rows else memory_parts(report)
    lines = [*notes(report), *_about(report), *_findings(report)]
    lines += [_MORE, *_not_shown(report, hidden)]
    return [Heading(_title(report)), *table, "\n".join(lines)]


def _findings(report: Report) -> Iterator[str]:
    """The first findings about replies, and how many there are more."""
    yield from report.findings[:_MOST_FINDINGS]
    if more := len(report.findings[_MOST_FINDINGS:]):
        yield f"{counted(more, 'more finding')} about replies: gistmill report --all."


def _not_shown(report: Report, hidden: Sequence[Row]) -> Iterator[str]:
    """A line about the rows that are hidden, if any."""
    if hidden:
        methods = len({row.method for row in hidden})
        of = f"{methods} of {counted(len({row.method for row in report.rows}), 'method')}"
        rows = "" if len(hidden) == methods else f"{len(hidden)} rows of "
        yield f"Not shown: {rows}{of}; gistmill report --all has them."


def group_parts(report: Report, group: str) -> list[Part]:
    """All that the report has of one of the GROUPS."""
    columns = tuple(c for c in report.columns if group_of(c, report) == group)
    shown = replace(report, columns=columns, num_tests=report.num_tests * (group == SCORES))
    own: list[Part]
    if group == COST:
        own = [*(cost_parts(report) if report.rows else []), *stage_parts(report)]
    else:
        own = [*score_parts(shown), *spread_parts(shown)] if report.rows else []
        own += (
            memory_parts(report) if group == READING else audit_parts(report.audits, shown.columns)
        )
    return [Heading(_title(report)), *notes(report), *own]


def _title(report: Report) -> str:
    documents, words = report.memory["documents"], report.memory["words"]
    return f"{report.run}: {counted(documents, 'document')}, {counted(words, 'word')}"


def _table(report: Report) -> Table:
    has_intervals = any(mean.low is not None for row in report.rows for mean in row.means.values())
    scores = [column for column in report.columns if column.measure in report.measures]
    main = [column for column in scores if column.measure in report.main]
    others = [column for column in scores if column not in main]

    def cells(row: Row, report: Report) -> dict[str, object]:
        answered, asked = row.counts.get("answered"), row.counts.get("n")
        found = {c.heading: score_value(row, c, report, has_intervals and c in main)
                 for c in (*main, *others)}  # fmt: skip
        return {"answered": f"{answered}/{asked}", **{k: _bare(v) for k, v in found.items()}}

    table = by_method(report, cells)
    spare = tuple(column.heading for column in reversed((*main, *others)))
    return replace(table, left=("by",), num_keys=table.num_keys + 1, spare=spare)


def _bare(value: object) -> object:
    """A mean without the number answered, which has a column."""
    return replace(value, answered=None) if isinstance(value, Measured) else value


def _about(report: Report) -> Iterator[str]:
    """Lines about the table's brackets and marks, or why it has none."""
    means = [row.means[name] for row in report.rows for name in report.main if name in row.means]
    if any(mean.low is not None for mean in means):
        yield "[..]: 95% interval over documents."
    elif means:
        yield _NO_INTERVALS
    if any(row.best for row in report.rows):
        yield _BEST
    elif report.num_tests:
        yield "No *, as no difference between methods is significant."
