"""Compare the inputs that stages supply for single questions, such as imported answers, with the
corpus."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from jobs.config.run_config import RunConfig
from pipeline.core.errors import UsageError
from pipeline.core.registry import hint
from pipeline.work.steps import Step
from pipeline.work.units import DocumentKey
from stages.corpora import load


def check_own_inputs(
    config: RunConfig,
    steps: Sequence[Step],
    keys: Sequence[DocumentKey],
    warn: Callable[[str], None],
) -> None:
    """Compare the questions that stages supply inputs for with those of the corpus; `warn` gets a
    line per method that lacks some.

    Raises UsageError for a question that the corpus does not have.
    """
    questions = {question.question_id: question for key in keys for question in key.questions}
    asked, usable = {*questions}, {name for name, one in questions.items() if not one.is_bad}
    brought = {
        f"predictions={config.predictions.get(step.method or '', step.name)}": own
        for step in steps
        if step.stage and (own := step.stage.inputs_per_question())
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
    """Notes on questions without an input. `asked`: the questions without the corpus's bad rows,
    which no method answers."""
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
