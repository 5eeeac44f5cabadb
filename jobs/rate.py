"""Raters: `gistmill rate` adds one to a finished run; a command's report shows its own."""

from collections.abc import Sequence

from jobs.compatibility import stored_config
from jobs.config import RunConfig, validated
from jobs.step_graph import run_steps
from pipeline.config import compose
from pipeline.errors import UsageError
from pipeline.place import place
from pipeline.store import connect
from pipeline.store.runs import RunFolder
from pipeline.store.views import run_name

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
    warehouse = place(composed["warehouse"])
    folder = RunFolder(warehouse, run_name(warehouse, composed["run"]))
    before = stored_config(folder).model_dump(mode="json")
    own = {"warehouse": str(warehouse), "cluster": composed["cluster"]}
    return validated({**before, **own, "raters": [*before["raters"], composed["rater"]]})


def shown_rater(config: RunConfig, run: str) -> str | None:
    """The rater, as `ratings` names it, that a command's report shows: the one it asked for, the
    first by name where that is no model, null where the run has none that is."""
    asked = config.model_copy(update={"raters": config.raters[-1:]})
    steps = [step.id for step, _ in run_steps(asked)]
    with connect(config.warehouse, run) as connection:
        found = connection.execute(
            """select rater from raters group by rater
            order by bool_or(list_contains(?::varchar[], step_id)) desc, rater limit 1""",
            [steps],
        ).fetchone()
    return found[0] if found else None
