"""`gistmill rate`: add a rater to a finished run; and choose the rater that a report shows."""

from collections.abc import Mapping, Sequence
from typing import Any

from jobs.config.options import KEYS
from jobs.graph.read_run import run_of
from jobs.graph.resolved_run import ResolvedRun
from jobs.run.compatibility import stored_config
from pipeline.core.compose import compose
from pipeline.core.errors import UsageError
from pipeline.files.place import as_path
from pipeline.store.runs.run_folder import RunFolder
from pipeline.store.sql.connect import run_name


def with_rater(words: Sequence[str]) -> ResolvedRun:
    """The stored run of `run=` in `warehouse=`, with the rater in `words` added.

    Raises UsageError for other words, or without a rater.
    """
    for word in words:
        key = word.partition("=")[0]
        if key not in KEYS["rate add"] and not key.startswith(("rater.", "cluster.")):
            raise UsageError(f"{word!r}: rate takes rater=, run=, warehouse=, cluster=")
    if not any(word.startswith("rater") for word in words):
        raise UsageError("rate needs a rater: add rater=NAME (gistmill ls lists them)")
    composed = compose(words)
    before = stored_values(composed)
    return run_of({**before, "raters": [*before["raters"], composed["rater"]]})


def stored_values(composed: Mapping[str, Any]) -> dict[str, Any]:
    """The stored config of the run that `composed` names, with the cluster of `composed`."""
    warehouse = as_path(composed["warehouse"])
    folder = RunFolder(warehouse, run_name(warehouse, composed["run"]))
    before = stored_config(folder).model_dump(mode="json")
    return {**before, "warehouse": str(warehouse), "cluster": composed["cluster"]}


def shown_rater(run: ResolvedRun, connection: Any) -> str | None:
    """The rater (as named in `ratings`) whose verdicts a command's report shows.

    It is the config's last rater; if that is not a model, the run's first rater by name; None if
    the run has no rater that is a model.
    """
    last = run.config.model_copy(update={"raters": run.config.raters[-1:]}).engines("judge")
    steps = [
        step.id
        for step, engine in run.steps_with_engines
        if step.stage and step.stage.role == "judge" and engine in last
    ]
    found = connection.execute(
        """select rater from raters group by rater
        order by bool_or(list_contains(?::varchar[], step_id)) desc, rater limit 1""",
        [steps],
    ).fetchone()
    return found[0] if found else None
