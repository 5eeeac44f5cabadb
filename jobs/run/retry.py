"""`gistmill retry`: plan units again whose rows have a problem."""

from collections.abc import Sequence

from jobs.config.options import KEYS
from jobs.graph.read_run import run_of
from jobs.graph.resolved_run import ResolvedRun
from jobs.run.rate_run import stored_values
from pipeline.core.compose import compose
from pipeline.core.errors import UsageError
from pipeline.work.units import RETRYABLE, RetryPolicy


def run_again(words: Sequence[str]) -> tuple[ResolvedRun, RetryPolicy]:
    """The stored run of `run=` in `warehouse=`, and the policy of what to retry: all problems
    that can be, or only those that `problem=` lists. Raises UsageError for other words."""
    problems: tuple[str, ...] = RETRYABLE
    others = []
    for word in words:
        key, _, value = word.partition("=")
        if key == "problem":
            problems = _problems(value)
        elif key in KEYS["retry"] or key.startswith("cluster."):
            others.append(word)
        else:
            raise UsageError(f"{word!r}: retry takes run=, warehouse=, problem=, cluster=")
    return run_of(stored_values(compose(others))), RetryPolicy(frozenset(problems))


def _problems(listed: str) -> tuple[str, ...]:
    found = tuple(part.strip() for part in listed.split(","))
    if wrong := [problem for problem in found if problem not in RETRYABLE]:
        raise UsageError(
            f"problem={wrong[0]}: not asked again; write some of {', '.join(RETRYABLE)}"
        )
    return found
