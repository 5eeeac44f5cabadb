"""`gistmill score`: rate and score the answers of another system, in the tables of a run."""

import re
from collections.abc import Sequence

from jobs.config.run_config import METHOD_NAME
from jobs.graph.read_run import composed_values, parsed_config, run_of
from jobs.graph.resolved_run import ResolvedRun
from jobs.run.rate_run import stored_values
from pipeline.core.compose import compose
from pipeline.core.errors import UsageError
from pipeline.files.place import as_path, is_remote
from pipeline.work.methods import methods_in

_OWN = ("predictions", "method")
_AGAIN = ("run", "warehouse", "rater", "cluster")  # the words where a run is added to
_USAGE = "write gistmill score predictions=FILE method=NAME"


def with_predictions(words: Sequence[str]) -> ResolvedRun:
    """A run with the answers in the file `predictions=` as the method `method=`.

    With corpus=, experiment= or any other word of `run`, a run of these words, without other
    methods unless methods= names some; else the stored run that `run=` names, or the last one. The
    file is stored as an absolute path: later launches read it again, from any folder. Raises
    UsageError.
    """
    own, others = _split(words)
    if not re.fullmatch(METHOD_NAME, own["method"]):
        raise UsageError(
            f"method={own['method']}: no name; write letters, digits, spaces and _.+:@/-, at most "
            "100, as the report is to show it"
        )
    if all(word.partition("=")[0].split(".")[0] in _AGAIN for word in others):
        composed = compose(others)
        values = stored_values(composed)
        if any(word.startswith("rater") for word in others):
            values["raters"] = [*values["raters"], composed["rater"]]
    else:
        values = parsed_config(composed_values(others)).model_dump(mode="json")
        if not any(word.startswith("methods=") for word in others):
            values["methods"] = ""
    given = {own["method"]: _from_anywhere(own["predictions"])}
    run = run_of({**values, "predictions": {**values["predictions"], **given}})
    _refuse_known(own["method"], run)
    return run


def _from_anywhere(file: str) -> str:
    """The absolute path of a local file; addresses stay as they are."""
    path = as_path(file)
    return file if is_remote(path) else str(path.absolute())


def _split(words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """The words of `score` itself, and those of `run`."""
    own: dict[str, str] = {}
    others = []
    for word in words:
        key, equals, value = word.partition("=")
        if key not in _OWN or not equals:
            others.append(word)
        elif key in own:
            raise UsageError(f"{key}= is given twice; score one file at a time")
        else:
            own[key] = value
    if missing := [f"{key}=" for key in _OWN if not own.get(key)]:
        raise UsageError(f"{' and '.join(missing)} missing; {_USAGE}")
    return own, others


def _refuse_known(name: str, run: ResolvedRun) -> None:
    """Raise UsageError for the name of a built-in method: the rows of both would be one
    method's."""
    ours = methods_in([folder / "method" for folder in run.conf_folders])
    if name in ours or any(name == m.name for m in run.methods if m.has_repeats):
        raise UsageError(f"method={name}: a method of gistmill has this name; take another")
