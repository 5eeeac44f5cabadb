"""The columns of the table of methods, means of measures and counts: their groups, and the choice
by `columns=`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from jobs.report.names import Names
from jobs.report.report import Report
from pipeline.core.errors import UsageError
from pipeline.work.stage import Column

SCORES, READING, COST = "Scores", "Reading", "Cost"
_count = partial(Column, has_interval=False)
COST_COLUMNS = (
    _count("calls", "calls", 120, about="model calls of the method's own stages, without judging"),
    _count("tokens", "tokens", 121, about="prompt and reply tokens of those calls"),
)
COUNTS = (
    _count("answered", "answered", 110, about="answers without a problem"),
    _count("unscored", "unscored", 111, about="answers to which the rater's verdict is unreadable"),
    *COST_COLUMNS,
    _count(
        "memory_calls", "memory calls", 122,
        about="model calls of the memory steps that the method's rows rest on, for all documents",
    ),
    _count("memory_tokens", "memory tokens", 123, about="prompt and reply tokens of those calls"),
    _count("judging_calls", "judging calls", 124, about="model calls of the method's verdicts"),
    _count("judging_tokens", "judging tokens", 125, about="prompt and reply tokens of those calls"),
)  # fmt: skip


def with_columns(
    report: Report, wanted: str | None, names: Names | None, more: Sequence[Column] = ()
) -> Report:
    """The report with the columns that `columns=` names, in its order; None: all columns of the
    run, and `more`.

    A name is that of a measure or count, or its heading, also as `names` print it. `n`, which the
    table always has, is allowed. Raises UsageError for a column that the run has not.
    """
    if wanted is None:
        return replace(report, columns=(*report.columns, *more))
    known = known_columns(report)
    by_name = measures_by_name(known, names)
    parts = [part.strip() for part in wanted.split(",") if part.strip()]
    if unknown := [part for part in parts if part.lower() not in (*by_name, "n")]:
        there = ", ".join(
            c.measure if c.measure == c.heading else f"{c.measure} ({c.heading})" for c in known
        )
        raise UsageError(f"columns={unknown[0]}: no such column; the run has {there}")
    chosen = dict.fromkeys(by_name[part.lower()] for part in parts if part.lower() in by_name)
    if not chosen:
        raise UsageError(f"columns={wanted}: names no column beside n")
    return replace(report, columns=tuple(c for name in chosen for c in known if c.measure == name))


def known_columns(report: Report) -> list[Column]:
    """The report's columns, and all counts of its methods."""
    found = {column.measure: column for column in (*report.columns, *COUNTS)}
    for name in (name for row in report.rows for name in row.counts if name != "n"):
        found.setdefault(name, _count(name, name.replace("_", " "), 200))
    return list(found.values())


def measures_by_name(known: Sequence[Column], names: Names | None) -> Mapping[str, str]:
    """By lower-case name, heading and printed heading; an earlier one of these wins."""
    printed = names.of_columns(known) if names else known
    found: dict[str, str] = {}
    for shown in (
        [column.measure for column in known],
        [column.heading for column in known],
        [column.heading for column in printed],
    ):
        for name, column in zip(shown, known, strict=True):
            found.setdefault(name.lower(), column.measure)
    return found


def group_of(column: Column, report: Report) -> str:
    """The group of a column: scores of answers, reading for them, or its cost, which comes last."""
    if column.measure in report.measures:
        return SCORES
    return COST if column.place >= COST_COLUMNS[0].place else READING
