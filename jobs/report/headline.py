"""The report on a terminal: the headline, one table of scores that fits a screen, and the parts of
the whole report by the names of its groups of columns."""

from collections.abc import Iterator
from dataclasses import replace

from jobs.audit.show_audit import audit_parts
from jobs.output.cells import Heading, Measured, Part, Table, counted
from jobs.report.columns import COST, READING, SCORES, group_of
from jobs.report.render import (
    memory_parts,
    notes,
    planned_parts,
    score_parts,
    score_value,
    spread_parts,
)
from jobs.report.report import Report, Row
from jobs.report.show_costs import by_method, cost_parts
from jobs.statistics.means import LEAST_DOCUMENTS

GROUPS = {group.lower(): group for group in (SCORES, READING, COST)}
"""The groups by the names that `--only` takes."""
_BEST = "*: the highest mean, and those that do not differ significantly from it."
_MORE = "More: gistmill report --all, or --only scores, reading or cost."
_NO_INTERVALS = f"No intervals, as there are fewer than {LEAST_DOCUMENTS} documents."


def headline_parts(report: Report) -> list[Part]:
    """The scores of every method in one table, each as far as it fits, the main ones first and with
    their 95% intervals; `answered` is how many of the method's answers have no problem."""
    table = [_table(report)] if report.rows else memory_parts(report)
    return [Heading(_title(report)), *table, "\n".join([*notes(report), *_about(report), _MORE])]


def group_parts(report: Report, group: str) -> list[Part]:
    """All that the report has of one of the GROUPS."""
    columns = tuple(c for c in report.columns if group_of(c, report) == group)
    shown = replace(report, columns=columns, num_tests=report.num_tests * (group == SCORES))
    own: list[Part]
    if group == COST:
        own = [*(cost_parts(report) if report.rows else []), *planned_parts(report)]
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
