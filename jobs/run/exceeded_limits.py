"""Limits that a finished run exceeds: rows with problems, and fallbacks of stages."""

import shlex
from collections.abc import Iterator, Sequence
from typing import Any

from jobs.graph.resolved_run import ResolvedRun
from pipeline.store.sql.accounts import StepCounts
from pipeline.store.sql.connection import query

_NUM_WORST = 3
_MOST_CHARS = 120  # of a detail
_INPUTS = "from inputs where step_id = '{}' and problem is not null"


def exceeded_limits(
    connection: Any, counts: Sequence[StepCounts], resolved: ResolvedRun
) -> Iterator[str]:
    """A line per step with more problems than `max_problem_rate`, naming its worst documents, and
    per stage with more fallbacks than `max_fallback_rate`. `connection` shows the run."""
    config = resolved.config
    for step in counts:
        if step.problem > config.max_problem_rate * step.inputs:
            yield (
                f"{step.label}: {step.problem} of {step.inputs} inputs have a problem "
                f"(max_problem_rate={config.max_problem_rate}); "
                f"{_worst(connection, step, resolved)}"
            )
    for row in query(connection, "select * from fallbacks where asked > 0"):
        if row["fell_back"] > config.max_fallback_rate * row["asked"]:
            yield (
                f"{row['stage']}: {100 * row['fell_back'] / row['asked']:.1f}% {row['what']} "
                f"(max_fallback_rate={config.max_fallback_rate})"
            )


def _worst(connection: Any, step: StepCounts, resolved: ResolvedRun) -> str:
    """The most frequent problem, with the detail of one such row where it has any, the documents
    with most problem rows, and a command that lists them all."""
    inputs = _INPUTS.format(step.step_id)
    (common,) = query(
        connection,
        f"select problem, count(*) as n {inputs} group by all order by n desc, problem limit 1",
    )
    rows = (
        f"from {_table(connection, step)} where step_id = '{step.step_id}' and problem is not null"
    )
    worst = [
        f"{_shown(row['document_id'])} ({row['n']})"
        for row in query(
            connection,
            f"select document_id, count(problem) as n {rows} "
            f"group by document_id order by n desc, document_id limit {_NUM_WORST}",
        )
    ]
    details = query(
        connection,
        f"select detail {rows} and problem = '{common['problem']}' and detail is not null "
        "order by document_id, detail limit 1",
    )
    such_as = "".join(f", such as: {_shown(row['detail'])[:_MOST_CHARS]}" for row in details)
    select = f"select document_id, question_id, problem {inputs}"
    words = [f"warehouse={resolved.config.warehouse}", f"run={resolved.name}"]
    return (
        f"most often {common['problem']} ({common['n']}){such_as}; most rows with a problem: "
        f"{', '.join(worst)}; all of them: gistmill sql {shlex.join([select, *words])}"
    )


def _table(connection: Any, step: StepCounts) -> str:
    (table,) = query(
        connection,
        f"select min(table_name) as name from shards where step_id = '{step.step_id}' "
        "and table_name <> 'calls'",
    )
    return str(table["name"])


def _shown(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)
