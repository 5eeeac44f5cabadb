"""Limits that a finished run exceeds: rows with problems, by their causes, and fallbacks of
stages."""

from collections.abc import Iterator, Sequence
from typing import Any

from jobs.graph.resolved_run import ResolvedRun
from jobs.problems.cause_lines import cause_lines
from pipeline.store.sql.accounts import StepCounts
from pipeline.store.sql.connection import query


def exceeded_limits(
    connection: Any, counts: Sequence[StepCounts], resolved: ResolvedRun
) -> Iterator[str]:
    """Where a step has more problems than `max_problem_rate`, a line per cause of the run's
    problems; and one per stage with more fallbacks than `max_fallback_rate`. `connection` shows
    the run."""
    config = resolved.config
    if any(step.problem > config.max_problem_rate * step.inputs for step in counts):
        yield from cause_lines(connection, config.warehouse, resolved.name)
    for row in query(connection, "select * from fallbacks where asked > 0"):
        if row["fell_back"] > config.max_fallback_rate * row["asked"]:
            yield (
                f"{row['stage']}: {100 * row['fell_back'] / row['asked']:.1f}% {row['what']} "
                f"(max_fallback_rate={config.max_fallback_rate})"
            )
