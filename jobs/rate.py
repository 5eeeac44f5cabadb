"""`gistmill rate`: a finished run's config with one more rater."""

from collections.abc import Sequence
from pathlib import Path

from jobs.config import RunConfig, validated
from jobs.grow import stored_config
from pipeline.config import compose
from pipeline.errors import UsageError
from pipeline.store import run_name
from pipeline.store.runs import RunFolder

_TAKES = ("rater", "rater.", "run", "warehouse", "cluster", "cluster.")


def with_rater(words: Sequence[str]) -> RunConfig:
    """The config of `run=` in `warehouse=` with the rater that `words` name.

    Everything else is the run's own. Raises UsageError for other words, or without a rater.
    """
    for word in words:
        key = word.partition("=")[0]
        if key not in _TAKES and not key.startswith(("rater.", "cluster.")):
            raise UsageError(f"{word!r}: rate takes rater=, run=, warehouse=, cluster=")
    if not any(word.startswith("rater") for word in words):
        raise UsageError("rate needs a rater: add rater=NAME (gistmill ls shows them)")
    composed = compose(words)
    warehouse = Path(composed["warehouse"])
    folder = RunFolder(warehouse, run_name(warehouse, composed["run"]))
    before = stored_config(folder).model_dump(mode="json")
    own = {"warehouse": str(warehouse), "cluster": composed["cluster"]}
    return validated({**before, **own, "raters": [*before["raters"], composed["rater"]]})
