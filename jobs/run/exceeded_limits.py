"""Limits that a finished run exceeds: rows with problems, and fallbacks of stages."""

import shlex
from collections.abc import Iterator, Sequence
from typing import Any

from jobs.graph.resolved_run import ResolvedRun
from pipeline.store.sql.accounts import StepCounts
from pipeline.store.sql.connection import query

_NUM_WORST = 3
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
    """The most frequent problem, the documents with most problem rows, and a command that lists
    them all."""
    inputs = _INPUTS.format(step.step_id)
    (common,) = query(
        connection,
        f"select problem, count(*) as n {inputs} group by all order by n desc, problem limit 1",
    )
    worst = [f"{_shown(row['document_id'])} ({row['n']})" for row in _documents(connection, step)]
    select = f"select document_id, question_id, problem {inputs}"
    words = [f"warehouse={resolved.config.warehouse}", f"run={resolved.name}"]
    return (
        f"most often {common['problem']} ({common['n']}); most rows with a problem: "
        f"{', '.join(worst)}; all of them: gistmill sql {shlex.join([select, *words])}"
    )


def _documents(connection: Any, step: StepCounts) -> list[dict[str, Any]]:
    """The documents with most rows with a problem, and how many of their rows have one."""
    (table,) = query(
        connection,
        f"select min(table_name) as name from shards where step_id = '{step.step_id}' "
        "and table_name <> 'calls'",
    )
    return query(
        connection,
        f"select document_id, count(problem) as n from {table['name']} "
        f"where step_id = '{step.step_id}' and problem is not null "
        f"group by document_id order by n desc, document_id limit {_NUM_WORST}",
    )


def _shown(document_id: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in document_id)
