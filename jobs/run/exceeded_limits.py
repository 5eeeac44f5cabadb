"""Limits that a finished run exceeds: rows with problems, by cause, and fallbacks of stages."""

import shlex
from collections.abc import Iterator, Sequence
from typing import Any

from jobs.graph.resolved_run import ResolvedRun
from jobs.output.cells import counted
from jobs.problems.causes import cause_lines
from pipeline.store.sql.accounts import StepCounts
from pipeline.store.sql.connection import query

_ALL = "from inputs where problem is not null"


def exceeded_limits(
    connection: Any, counts: Sequence[StepCounts], resolved: ResolvedRun
) -> Iterator[str]:
    """Where a step exceeds `max_problem_rate`, a line per cause of the run's problems, and one with
    the limit and a command that lists all rows with problems; and a line per stage that exceeds
    `max_fallback_rate`. `connection` shows the run."""
    config = resolved.config
    limit = config.max_problem_rate
    if over := [step for step in counts if step.problem > limit * step.inputs]:
        yield from cause_lines(connection)
        words = [_ALL, f"warehouse={config.warehouse}", f"run={resolved.name}"]
        yield (
            f"in {counted(len(over), 'step')} more than max_problem_rate={limit} of the inputs "
            f"have a problem; all of them: gistmill sql {shlex.join(words)}"
        )
    for row in query(connection, "select * from fallbacks where asked > 0"):
        if row["fell_back"] > config.max_fallback_rate * row["asked"]:
            yield (
                f"{row['stage']}: {100 * row['fell_back'] / row['asked']:.1f}% {row['what']} "
                f"(max_fallback_rate={config.max_fallback_rate})"
            )
