"""Shell completion of `key=value` words: the keys, and the runs of ./warehouse after `run=`.

It must be fast, as it runs at every press of the key: no file but the folder of runs is read.
"""

from collections.abc import Iterable
from pathlib import Path

from jobs.config.options import KEYS

_MAKING = (
    "experiment", "corpus", "corpus.path", "methods", "engine",
    "engine.model", "rater", "rater.model", "memory", "embedder.model", "family", "limit", "sample",
    "repeats",
    "repeat_from", "run", "warehouse", "plugins", "cluster", "cluster.address",
    "cluster.deadline", "reply_format",
)  # fmt: skip
_NOT_OF_ASK = {"experiment", "corpus", "corpus.path", "methods", "run"}
_OF_ASK = ("method", *(key for key in _MAKING if key not in _NOT_OF_ASK))
_KEYS = dict(
    **KEYS,
    ask=_OF_ASK,
    score=("predictions", "method", *_MAKING),
)
_PARTS = ("limit", "schedule", "machines", "cache", "peers", "units", "driver", "rates")  # of bench
_WAREHOUSE = Path("warehouse")


def completed(ctx: object, incomplete: str) -> list[str]:
    """The words that complete what was typed to a verb that makes a run."""
    verb = " ".join(str(getattr(ctx, "command_path", "")).split()[1:])
    parts = [part for part in _PARTS if verb == "bench" and part.startswith(incomplete)]
    return [*parts, *run_words(incomplete, _KEYS.get(verb, _MAKING))]


def run_words(incomplete: str, keys: Iterable[str]) -> list[str]:
    """The keys that begin so, or `run=` with a run's name."""
    words = [f"{key}=" for key in keys]
    if incomplete.startswith("run="):
        words = sorted(f"run={run.name}" for run in (_WAREHOUSE / "runs").glob("[!.]*/"))
    return [word for word in words if word.startswith(incomplete)]
