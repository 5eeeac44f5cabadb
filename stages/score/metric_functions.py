"""Register functions as metrics, ours (metrics.py) and those of plugins alike."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any, TypeVar

from pipeline.core.errors import UsageError
from pipeline.core.registry import Registry, first_sentence, is_ours
from pipeline.core.rows import Question
from pipeline.work.class_checks import file_of
from pipeline.work.measure_names import register_measure

_MOST = 100 + 1e-6  # with the error of floating point
METRICS: "dict[str, Metric]" = {}
FUNCTIONS: "Registry[Callable[..., float]]" = Registry("is the metric {!r}", "metrics")
Function = TypeVar("Function", bound=Callable[..., float])


def _always(question: Question) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Metric:
    """`score` of an answer to a question with references; where it does not apply there is none.
    `about`: what a paper states of it. `version`: of a plugin's, hashed into the step. `groups`:
    as `metric` is given them."""

    score: Callable[[str, Question], float]
    applies: Callable[[Question], bool]
    about: str
    version: int | None
    groups: tuple[str, ...]


def metric(
    name: str,
    *,
    applies: Callable[[Question], bool] = _always,
    of_question: bool = False,
    about: str = "",
    version: int | None = None,
    groups: tuple[str, ...] = (),
) -> Callable[[Function], Function]:
    """Register a function as a metric, which the `metrics` of a family's settings may name:

        @metric("first_word", version=1)
        def first_word(answer: str, reference: str) -> float:
            \"\"\"100 where both begin with the same word, else 0.\"\"\"
            return 100.0 * (answer.split()[:1] == reference.split()[:1])

    It returns 0 to 100; of several references the best counts. With `of_question` it is given the
    Question in place of a reference. `about`: what is stated of it, by default its docstring's
    first sentence. A plugin's has a `version`, raised when its values change meaning.

    `groups`: a key of questions' metadata, as of the episode that a question is a step of. The
    report's mean is then over groups, and each counts as the mean of its questions; with a second
    key, of the number of its questions, as the least of them, 0 where one has no value. Raises
    UsageError, naming its file, for one without a version, for a name that another measure has, and
    for a function that cannot be called so.
    """

    def add(function: Function) -> Function:
        register_measure(name, function)
        stated = about or first_sentence(function)
        _refuse_unusable(name, function, stated, version)
        own = partial(_checked, name, function)
        score = own if of_question else partial(_best, own)
        METRICS[name] = Metric(score, applies, stated, version, groups)
        FUNCTIONS.add(name, function, stated)
        return function

    return add


def _refuse_unusable(
    name: str, function: Callable[..., float], stated: str, version: int | None
) -> None:
    place = f"{file_of(function)}: the metric {name}"
    if version is None and not is_ours(function):
        raise UsageError(f"{place} has no version; write `@metric({name!r}, version=1)`")
    if not stated:
        raise UsageError(f"{place} has no docstring; say in one what it measures")
    if inspect.iscoroutinefunction(function) or len(inspect.signature(function).parameters) != 2:
        raise UsageError(f"{place}: write `def {function.__name__}(answer, reference)`")


def _checked(name: str, function: Callable[..., float], answer: str, right: Any) -> float:
    """Its value. Raises TypeError for one that is no number from 0 to 100."""
    value = function(answer, right)
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) <= _MOST:
        raise TypeError(
            f"{file_of(function)}: the metric {name} returned {repr(value)[:40]}; return 0 to 100"
        )
    return float(value)


def _best(score: Callable[[str, str], float], answer: str, question: Question) -> float:
    """The best over references. ValueError without references."""
    return max(score(answer, reference) for reference in question.references)
