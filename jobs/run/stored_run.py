"""Verbs that continue a stored run: `gistmill rate` adds a rater, `gistmill retry` plans units
again whose rows have a problem, `gistmill score` adds the answers of another system."""

import re
from collections.abc import Sequence
from typing import Any

from jobs.config.options import KEYS
from jobs.config.run_config import METHOD_NAME
from jobs.graph.read_run import composed_values, parsed_config, run_of
from jobs.graph.resolved_run import ResolvedRun
from jobs.run.compatibility import stored_config
from pipeline.core.compose import compose
from pipeline.core.errors import UsageError
from pipeline.files.storage import as_path, is_remote
from pipeline.store.runs.run_folder import RunFolder
from pipeline.store.sql.connect import run_name
from pipeline.work.methods import methods_in
from pipeline.work.units import RETRYABLE, RetryPolicy

_OF_SCORE = ("predictions", "method")
_ADDING = ("run", "warehouse", "rater", "cluster")  # the words where `score` adds to a run


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
    return run_of(_extended(words))


def run_again(words: Sequence[str]) -> tuple[ResolvedRun, RetryPolicy]:
    """The stored run of `run=` in `warehouse=`, and the policy of what to retry: all problems
    that can be, or only those that `problem=` lists. Raises UsageError for other words."""
    problems: tuple[str, ...] = RETRYABLE
    others = []
    for word in words:
        key, _, value = word.partition("=")
        if key == "problem":
            problems = tuple(part.strip() for part in value.split(","))
            if wrong := [problem for problem in problems if problem not in RETRYABLE]:
                raise UsageError(
                    f"problem={wrong[0]}: not asked again; write some of {', '.join(RETRYABLE)}"
                )
        elif key in KEYS["retry"] or key.startswith("cluster."):
            others.append(word)
        else:
            raise UsageError(f"{word!r}: retry takes run=, warehouse=, problem=, cluster=")
    return run_of(_extended(others)), RetryPolicy(frozenset(problems))


def with_predictions(words: Sequence[str]) -> ResolvedRun:
    """A run with the answers in the file `predictions=` as the method `method=`.

    With corpus=, experiment= or any other word of `run`, a run of these words, without other
    methods unless methods= names some; else the stored run that `run=` names, or the last one. The
    file is stored as an absolute path: later launches read it again, from any folder. Raises
    UsageError.
    """
    (file, name), others = _split(words)
    if not re.fullmatch(METHOD_NAME, name):
        raise UsageError(
            f"method={name}: no name; write letters, digits, spaces and _.+:@/-, at most 100, as "
            "the report is to show it"
        )
    if all(word.partition("=")[0].split(".")[0] in _ADDING for word in others):
        values = _extended(others)
        if values["audit_of"]:
            raise UsageError(f"run={values['run']}: an audit of raters has no other methods; name "
                             "the run that it audits")  # fmt: skip
    else:
        values = parsed_config(composed_values(others)).model_dump(mode="json")
        if not any(word.startswith("methods=") for word in others):
            values["methods"] = ""
    path = as_path(file)
    given = {name: file if is_remote(path) else str(path.absolute())}
    run = run_of({**values, "predictions": {**values["predictions"], **given}})
    ours = methods_in([folder / "method" for folder in run.conf_folders])
    # The rows of both would be one method's.
    if name in ours or any(name == m.name for m in run.methods if m.has_repeats):
        raise UsageError(f"method={name}: a method of gistmill has this name; take another")
    return run


def _split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The values of `predictions=` and `method=`, and the other words."""
    own: dict[str, str] = {}
    others = []
    for word in words:
        key, equals, value = word.partition("=")
        if key not in _OF_SCORE or not equals:
            others.append(word)
        elif key in own:
            raise UsageError(f"{key}= is given twice; score one file at a time")
        else:
            own[key] = value
    if missing := [f"{key}=" for key in _OF_SCORE if not own.get(key)]:
        raise UsageError(
            f"{' and '.join(missing)} missing; write gistmill score predictions=FILE method=NAME"
        )
    return [own[key] for key in _OF_SCORE], others


def _extended(words: Sequence[str]) -> dict[str, Any]:
    """The stored config of the run that `words` name, with the cluster and rater among them."""
    composed = compose(words)
    warehouse = as_path(composed["warehouse"])
    folder = RunFolder(warehouse, run_name(warehouse, composed["run"]))
    before = stored_config(folder).model_dump(mode="json")
    added = [composed["rater"]] if any(word.startswith("rater") for word in words) else []
    return {
        **before,
        "warehouse": str(warehouse),
        "cluster": composed["cluster"],
        "raters": [*before["raters"], *added],
    }
