"""Shell completion of `key=value` words: the keys, and the runs of ./warehouse after `run=`.

It must be fast, as it runs at every press of the key: no file but the folder of runs is read.
"""

from pathlib import Path

from jobs.config.options import KEYS

_MAKING = (
    "experiment=", "corpus=", "corpus.path=", "methods=", "engine=", "engine.model=", "rater=",
    "rater.model=", "memory=", "embedder.model=", "family=", "limit=", "sample=", "repeats=",
    "repeat_from=", "run=", "warehouse=", "plugins=", "cluster=", "cluster.address=",
    "cluster.deadline=", "reply_format=",
)  # fmt: skip
_NOT_OF_ASK = {"experiment=", "corpus=", "corpus.path=", "methods=", "run="}
_OTHERS = dict(
    ask=("method=", *(key for key in _MAKING if key not in _NOT_OF_ASK)),
    score=("predictions=", "method=", *_MAKING),
    plan=(*_MAKING, "pilot="),
    bench=("limit", "schedule", "cache", "scale", "page", "rates", *_MAKING),
)
_WAREHOUSE = Path("warehouse")


def completed(ctx: object, incomplete: str) -> list[str]:
    """The words that complete what was typed: keys, or `run=` with a run's name."""
    if incomplete.startswith("run="):
        names = sorted(folder.name for folder in (_WAREHOUSE / "runs").glob("[!.]*/"))
        words = [f"run={name}" for name in names]
    else:
        verb = " ".join(str(getattr(ctx, "command_path", "")).split()[1:])
        own = KEYS.get(verb)
        words = [f"{key}=" for key in own] if own else [*_OTHERS.get(verb, _MAKING)]
    return [word for word in words if word.startswith(incomplete)]
