"""What a prompt family settles besides its templates, and the check of both.

A family is a folder of templates (pipeline/prompts.py) with a `family.yaml`. Only this file reads
that YAML; overriding its values is the config's business.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

import yaml
from jinja2 import TemplateError
from pydantic import (
    BaseModel,
    ConfigDict,
    NonNegativeInt,
    PositiveInt,
    ValidationError,
    field_validator,
    model_validator,
)

from pipeline.errors import UsageError
from pipeline.prompts import Family, Fields
from stages import parsing
from stages.constraints import misread
from stages.fields import (
    AnswerQuestion,
    BreakPoint,
    Labelled,
    ParallelLookUp,
    Passage,
    PermissiveRating,
    SequentialLookUp,
    ShortenPage,
    StrictRating,
)
from stages.metrics import METRICS

NUM_OPTIONS = 4  # of the sample question, which the answer examples are read against
PARSERS: Mapping[str, Callable[[str], Any]] = {
    "break_point": parsing.parse_break_point,
    "look_up_p": parsing.parse_pages,
    "look_up_s": parsing.parse_page_or_stop,
    "answer": partial(parsing.parse_option, num_options=NUM_OPTIONS),
    "rate_strict": parsing.parse_strict,
    "rate_permissive": parsing.parse_permissive,
}


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PaginationWords(_Settings):
    """Lengths in words. Source of min and max: ReadAgent table 10."""

    min_words: PositiveInt  # before the first label
    max_words: PositiveInt  # per call
    tail_words: NonNegativeInt  # a shorter rest is the last page, without a call
    preceding_words: NonNegativeInt  # shown before the window
    uniform_words: PositiveInt  # a page of the uniform-length baseline

    @model_validator(mode="after")
    def _min_below_max(self) -> "PaginationWords":
        if self.min_words > self.max_words:
            raise ValueError(f"min_words {self.min_words} is above max_words {self.max_words}")
        return self


class ReplyTokens(_Settings):
    """The longest reply to each kind of prompt, in the engine's tokens."""

    break_point: PositiveInt
    gist: PositiveInt
    look_up: PositiveInt
    answer: PositiveInt
    rate: PositiveInt


class Forms(_Settings):
    """What constrained replies look like; `{}` stands for the label, page numbers or letter.

    Verdicts stand alone in every family: the raters' prompts ask for a word or two.
    """

    break_point: str
    look_up_p: str
    look_up_s: str  # where it is not STOP
    answer: str  # to multiple choice
    rate_strict: Literal["{}"] = "{}"
    rate_permissive: Literal["{}"] = "{}"

    @field_validator("*")
    @classmethod
    def _has_one_place(cls, form: str) -> str:
        if form.count("{}") != 1:
            raise ValueError("write {} once, where the label, page numbers or letter go")
        return form


class Example(_Settings):
    """A reply and what the parser of its prompt must read in it."""

    reply: str
    reads: int | str | tuple[int, ...] | None

    @field_validator("reads", mode="before")
    @classmethod
    def _no_bool(cls, reads: object) -> object:
        if isinstance(reads, bool):
            raise ValueError("YAML takes yes and no for booleans; put them in quotes")
        return reads


class FamilySettings(_Settings):
    """A `family.yaml`. Nothing has a default: the file states it all."""

    words: Literal["ours", "authors"]  # whose wording the prompts are in
    first_page: Literal[0, 1]
    pagination: PaginationWords
    reply_tokens: ReplyTokens
    forms: Forms
    answer_each_look_up: bool  # -S is shown, before each look-up, its answer so far (film scripts)
    answer_words: PositiveInt
    constant_answer: str
    metrics: tuple[str, ...]
    judged: bool  # has an accuracy, by judges of its own (LongMemEval section 3.3); '-' until then
    examples: dict[str, tuple[Example, ...]]

    @field_validator("metrics")
    @classmethod
    def _known_metrics(cls, metrics: tuple[str, ...]) -> tuple[str, ...]:
        return _known(metrics, METRICS)

    @field_validator("examples")
    @classmethod
    def _known_prompts(cls, examples: dict[str, Any]) -> dict[str, Any]:
        _known(tuple(examples), PARSERS)
        return examples


def load_family(folder: Path) -> FamilySettings:
    """The settings in `folder`. Raises UsageError naming the file and the key that is wrong."""
    path = folder / "family.yaml"
    try:
        return FamilySettings.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: no YAML: {' '.join(str(error).split())}") from error
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"]) or "the file"
        raise UsageError(f"{path}: {key}: {first['msg']}") from error


def check_family(folder: Path) -> list[str]:
    """One line per failure of the family in `folder`; empty when all is well.

    Every prompt renders, every value occurs in it, the parsers read the family's examples as it
    says and its forms as what they are filled with, and a look-up prompt is as long as the answer
    prompt that follows it. Raises UsageError where the folder is no family or its settings are
    wrong.
    """
    settings = load_family(folder)
    family = Family(folder)
    failures = [line for fields in SAMPLES for line in _check_prompt(family, fields)]
    failures += _check_lengths(family) if not failures else []
    for prompt, examples in settings.examples.items():
        for index, example in enumerate(examples):
            read = PARSERS[prompt](example.reply)
            if read != example.reads:
                place = f"{folder / 'family.yaml'}: examples.{prompt}[{index}]"
                failures.append(f"{place}: read {_shown(read)}, expected {_shown(example.reads)}")
    forms = settings.forms.model_dump()
    failures += [f"{folder / 'family.yaml'}: forms.{line}" for line in misread(forms)]
    return list(dict.fromkeys(failures))


def rendered_values(fields: Fields) -> Iterator[str]:
    """Every value that the rendered prompt must hold: all but the length asked of an option."""
    options = getattr(fields, "options", ())
    for field in dataclasses.fields(fields):
        if field.name != "answer_words" or not options:
            yield from _values(getattr(fields, field.name))


def _values(value: Any) -> Iterator[str]:
    if isinstance(value, tuple):
        for item in value:
            yield from _values(item)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            if field.name != "kind":  # says how a passage is shown
                yield from _values(getattr(value, field.name))
    elif value is not None:
        yield str(value)


def _check_prompt(family: Family, fields: Fields) -> Iterator[str]:
    place = f"{family.folder}: {fields.prompt}"
    try:
        text = _text(family, fields)
    except UsageError as error:
        yield str(error)
    except (TemplateError, TypeError, ValueError) as error:
        yield f"{place}: {error}"
    else:
        for value in rendered_values(fields):
            if value not in text:
                yield f"{place}: {value!r} is not in the rendered prompt"


def _check_lengths(family: Family) -> Iterator[str]:
    """What fits into the context is decided by the look-up prompt, so it must be the longer one."""
    for options in (_OPTIONS, ()):
        look_up = ParallelLookUp(_PASSAGES, _QUESTION, options, max_pages=1)
        answer = AnswerQuestion(_PASSAGES, _QUESTION, options, answer_words=100)
        if len(_text(family, look_up)) < len(_text(family, answer)):
            what = "with options" if options else "without options"
            yield f"{family.folder}: look_up_p: shorter than answer, {what}"


def _text(family: Family, fields: Fields) -> str:
    return "\n".join(message["content"] for message in family.render(fields))


def _shown(read: object) -> object:
    return list(read) if isinstance(read, tuple) else read


def _known(names: tuple[str, ...], known: Mapping[str, object]) -> tuple[str, ...]:
    for name in names:
        if name not in known:
            raise ValueError(f"{name} is none of {', '.join(known)}")
    return names


# Sample values that no template holds by chance, some of them with what a template could trip over.
_QUESTION = "Who rang the bell at {{ noon }}? <5>"
_OPTIONS = ("the sexton & his wife", "nobody {% at all %}", "a 'child'", "Page [3]")
_PASSAGES = (
    Passage("gist", 6100, "The village \\n wakes up."),
    Passage("page", 6101, "The bell rings.\n\n<b>Twelve</b> times.\n"),
    Passage("gist", 6102, "Nobody admits {# to #} it."),
)
_DATE = "2023/05/30 (Tue) 21:48 {{ noon }}"
_TEXT = (Passage("text", None, "The bell rings."), Passage("text", None, "Nobody admits it."))
SAMPLES: tuple[Fields, ...] = (
    BreakPoint("", (Labelled("The bell {{ rings }}.", None), Labelled("Noon.\n", 7101))),
    BreakPoint(
        "It was <4> a quiet day.",
        (Labelled("The bell rings.", None), Labelled("Noon.", 7101), Labelled("Dust.", 7102)),
    ),
    ShortenPage("The bell {{ rings }}.\n\n{% twice %} <3>"),
    ParallelLookUp(_PASSAGES, _QUESTION, (), max_pages=1),
    ParallelLookUp(_PASSAGES, _QUESTION, _OPTIONS, max_pages=8101),
    SequentialLookUp(_PASSAGES, _QUESTION, (), pages_read=(), refused=()),
    SequentialLookUp(_PASSAGES, _QUESTION, _OPTIONS, pages_read=(6101, 6104), refused=(8102, 8103)),
    SequentialLookUp(_PASSAGES, _QUESTION, (), (6101,), (), "The sexton {{ rang }} <2>."),
    AnswerQuestion(_PASSAGES, _QUESTION, (), answer_words=8104),
    AnswerQuestion(_PASSAGES, _QUESTION, _OPTIONS, answer_words=8104),
    AnswerQuestion(_TEXT, _QUESTION, (), answer_words=8104),
    ParallelLookUp(_PASSAGES, _QUESTION, (), max_pages=8101, asked_at=_DATE),
    SequentialLookUp(_PASSAGES, _QUESTION, (), (6101,), (8102,), asked_at=_DATE),
    AnswerQuestion(_PASSAGES, _QUESTION, (), answer_words=8104, asked_at=_DATE),
    AnswerQuestion((), _QUESTION, (), answer_words=8104),
    AnswerQuestion((), _QUESTION, _OPTIONS, answer_words=8104),
    StrictRating("Who rang {{ it }}?", "The sexton <1>.", "Nobody; {% no %}."),
    PermissiveRating("Who rang {{ it }}?", "The sexton <1>.", "Nobody; {% no %}."),
)
