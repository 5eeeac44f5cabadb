"""`gistmill retry`: ask again where the rows of a run have a problem."""

from collections.abc import Sequence

from jobs.config import validated
from jobs.options import KEYS
from jobs.rate import config_again
from jobs.run_config import RunConfig
from pipeline.config import compose
from pipeline.errors import UsageError
from pipeline.units import RETRIED, Retries


def run_again(words: Sequence[str]) -> tuple[RunConfig, Retries]:
    """The stored config of `run=` in `warehouse=`, and what of it is asked again: all that can be,
    or only the problems that `problem=` lists. Raises UsageError for other words."""
    problems: tuple[str, ...] = RETRIED
    others = []
    for word in words:
        key, _, value = word.partition("=")
        if key == "problem":
            problems = _problems(value)
        elif key in KEYS["retry"] or key.startswith("cluster."):
            others.append(word)
        else:
            raise UsageError(f"{word!r}: retry takes run=, warehouse=, problem=, cluster=")
    return validated(config_again(compose(others))), Retries(frozenset(problems))


def _problems(listed: str) -> tuple[str, ...]:
    found = tuple(part.strip() for part in listed.split(","))
    if wrong := [problem for problem in found if problem not in RETRIED]:
        raise UsageError(f"problem={wrong[0]}: not asked again; write some of {', '.join(RETRIED)}")
    return found
