"""`gistmill score`: rate and score the answers that another system gave, in the tables of a run."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from jobs.config import read_config, validated
from jobs.rate import config_again
from jobs.run_config import METHOD_NAME, RunConfig
from pipeline.config import compose
from pipeline.errors import UsageError
from pipeline.methods import available
from pipeline.names import hint
from pipeline.place import is_remote, place
from pipeline.steps import Step
from pipeline.units import DocumentKey
from stages.corpora import load

_OWN = ("predictions", "method")
_AGAIN = ("run", "warehouse", "rater", "cluster")  # the words where a run is added to
_USAGE = "write gistmill score predictions=FILE method=NAME"


def with_predictions(words: Sequence[str]) -> RunConfig:
    """The config of a run with the answers in the file `predictions=` as the method `method=`.

    With corpus=, experiment= or any other word of `run` a run of these words, without methods of
    ours unless methods= names some; else the stored run that `run=` names, or the last one. The
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
        values = config_again(composed)
        if any(word.startswith("rater") for word in others):
            values["raters"] = [*values["raters"], composed["rater"]]
    else:
        values = read_config(others).model_dump(mode="json")
        if not any(word.startswith("methods=") for word in others):
            values["methods"] = ""
    given = {own["method"]: _from_anywhere(own["predictions"])}
    config = validated({**values, "predictions": {**values["predictions"], **given}})
    _refuse_known(own["method"], config)
    return config


def _from_anywhere(file: str) -> str:
    """The absolute path of a local file; addresses stay as they are."""
    path = place(file)
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


def _refuse_known(name: str, config: RunConfig) -> None:
    """Raise UsageError for the name of a method of ours: the rows of both would be one method's."""
    ours = available([folder / "method" for folder in config.conf_folders])
    if name in ours or any(name == m.name for m in config.expanded() if m.has_repeats):
        raise UsageError(f"method={name}: a method of gistmill has this name; take another")


def check_own_inputs(
    config: RunConfig,
    steps: Sequence[Step],
    keys: Sequence[DocumentKey],
    warn: Callable[[str], None],
) -> None:
    """Compare the questions that stages bring something to with those of the corpus; `warn` gets a
    line per method that lacks some.

    Raises UsageError for a question that the corpus does not have.
    """
    questions = {question.question_id: question for key in keys for question in key.questions}
    asked, usable = {*questions}, {name for name, one in questions.items() if not one.is_bad}
    brought = {
        f"predictions={config.predictions.get(step.method or '', step.name)}": own
        for step in steps
        if step.stage and (own := step.stage.own_inputs())
    }
    for given, own in brought.items():
        _refuse_unknown(config, given, own.keys() - asked, asked)
    for given, own in brought.items():
        for line in _notes(own, usable):
            warn(f"{given}: {line}")


def _refuse_unknown(config: RunConfig, given: str, unknown: set[str], asked: set[str]) -> None:
    if unknown and (config.limit or config.sample):  # it may be of a document that was not chosen
        asked = {q.question_id for loaded in load(config.corpus) for q in loaded.questions}
        unknown -= asked
    if not unknown:
        return
    first = min(unknown)
    more = f" and {len(unknown) - 1} more of its ids" if len(unknown) > 1 else ""
    raise UsageError(
        f"{given}: no question {first!r}{more} in corpus={config.corpus.name}; "
        f"{hint(first, sorted(asked))}; use the ids of "
        "gistmill sql 'select question_id from questions'"
    )


def _notes(brought: Mapping[str, Any], asked: set[str]) -> Iterator[str]:
    """`asked`: the questions without the bad rows of the corpus, which no method answers."""
    missing = sorted(q for q in asked if brought.get(q) is None)
    if missing:
        yield (
            f"{len(missing)} of {len(asked)} questions have no answer and count 0: "
            f"{', '.join(missing[:3])}{', ...' if len(missing) > 3 else ''}"
        )
    other = sorted(
        q for q, value in brought.items() if value is not None and type(value) is not str
    )
    if other:
        yield f"{len(other)} answers are no text and count 0 (bad_input), the first of {other[0]!r}"
