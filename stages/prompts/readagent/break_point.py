"""Where to end the page that starts with a window's first paragraph (ReadAgent section 3.1)."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pipeline.core.prompts import Constraint, Prompt
from pipeline.core.reply_forms import plain_text
from stages.prompts.parsing.replies import NUMBERS, is_hedged, one_of, settled, without_rejected
from stages.text.ranking import terms

_BLOCK_TERMS = 100  # how much text before and after a label is compared
_TAG = re.compile(r"<\s*(\d{1,9})\s*>(?!\s*\?)")

_REJECTABLE = r"(?:(?i:label)\s+)?<\s?\d{1,9}\s?>|(?i:label)\s+\d{1,9}\b"

_OR = r"\bor\b(?:\s+(?:maybe|perhaps|possibly)\b)?"
_NO_OTHER = (  # two are no answer, nor is a question
    rf"(?!\s*(?:[/&,]|{_OR}|\band\b)\s*[<(\[{{]\s*\d|[ ]?<\s*\d|\s*(?:/|{_OR})\s*\d|\s*\?)"
)
# <57>, also in other brackets, or 57 that does not begin 57.5, 57th or 57-60. At most nine digits:
# int() must not fail.
_LABEL = (
    r"(?P<tag>[<(\[{]\s*)?(?P<label>\d{1,9})(?(tag)\s*(?:[>)\]}]|\Z)|(?!\.?\w|\s*[-–]\s*\d))"
    rf"{_NO_OTHER}"
)
_BREAK = r"(?:\b(?:break\s*+-?\s*+point|label)s?\b|[断斷][点點])"
_IS = r"\s*(?:is\b|would be\b|should be\b|:|=)[\s:]*(?:(?:label|after|at)\s+){0,3}"
_BREAK_POINTS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?:{_BREAK}|\banswer\b(?={_IS}[<(\[{{]?\s*\d+\s*[>)\]}}]?\s*[.!]?\s*(?:\n|\Z))){_IS}{_LABEL}",
        rf"\A[<(\[{{]\s*(?P<label>\d{{1,9}})\s*[>)\]}}]{_NO_OTHER}",
        r"\A(?P<label>\d{1,9})[.:]?\s*(?:\n|\Z)",
        rf"(?:{_BREAK}|\b(?:choose|pick|select|go\s+with)\s+(?:label\b)?)\s*{_LABEL}"
        r"|\b(?:so|thus|therefore|hence)[:,]?\s+(?:(?:it|is|at|after)\s+){0,3}<\s*(?P<then>\d{1,9})\s*>",
    )
)


@dataclass(frozen=True, slots=True)
class Labelled:
    """A paragraph of a pagination window and the label that stands after it, if any."""

    text: str
    label: int | None


class PageEnd(Prompt[int]):
    """Base class: where to end the page that starts with the first of `paragraphs`? The value is a
    label shown."""

    max_reply_tokens: ClassVar[int] = 128
    version: ClassVar[int] = 1
    form: ClassVar[str | None] = "Break point: <{}>"
    assumed: ClassVar[str] = "the label in the middle"
    paragraphs: tuple[Labelled, ...]  # a field of every subclass

    def labels(self) -> list[int]:
        """The legal labels."""
        return [part.label for part in self.paragraphs if part.label is not None]

    def read(self, reply: str, is_cut: bool) -> int | None:
        """The label chosen, as written; a cut explanation does no harm."""
        return parse_break_point(reply, is_cut)

    def is_legal(self, value: int) -> bool:
        return value in self.labels()

    def legal(self, form: str) -> Constraint:
        return one_of(form, self.labels())

    def extractive(self) -> str:
        """The label with the least in common between the text before it and after it."""
        split = [terms(paragraph.text) for paragraph in self.paragraphs]
        cohesion: dict[int, float] = {}
        for place, paragraph in enumerate(self.paragraphs, start=1):
            after = [term for found in split[place:] for term in found][:_BLOCK_TERMS]
            before = [term for found in split[:place] for term in found][-_BLOCK_TERMS:]
            if paragraph.label is not None:
                # Nothing after it is nothing to compare: the window's end is the last resort.
                cohesion[paragraph.label] = _cosine(before, after) if after else math.inf
        if not cohesion:
            return "There is no label to break at."
        label = min(cohesion, key=lambda found: cohesion[found])
        return (
            f"Break point: <{label}>\n"
            "The words change most from the text before it to that after it."
        )

    def expected(self) -> str:
        """The label in the middle, and a reason."""
        labels = self.labels()
        return (
            f"Break point: <{labels[len(labels) // 2]}>\n"
            "Because the scene ends here and another one begins."
        )

    @classmethod
    def form_values(cls) -> Mapping[str, Any]:
        return {str(number): number for number in NUMBERS}


@dataclass(frozen=True)
class BreakPoint(PageEnd):
    """Where to end the page that starts with the first paragraph? The value is a label shown."""

    name: ClassVar[str] = "break_point"
    preceding: str  # the text just before the window, for orientation; may be empty
    paragraphs: tuple[Labelled, ...]
    following: str = ""  # what is shown of the text after the window; may be empty

    @classmethod
    def samples(cls) -> tuple["BreakPoint", ...]:
        quiet = Labelled("The bell rings.", None)
        return (
            cls(
                "It was <4> a quiet day.", (quiet, Labelled("Noon.", 7101), Labelled("Dust.", 7102))
            ),
            cls("", (Labelled("The bell {{ rings }}.", None), Labelled("Noon.\n", 7101))),
            cls("", (quiet, Labelled("Noon.", 7101)), "Then {{ dusk }} <9> falls.\n..."),
        )


def parse_break_point(reply: str, is_cut: bool = False) -> int | None:
    """The label chosen (ReadAgent 3.1): `Break point: <57>`, `Label: <57>`, `<57>`, `57`.

    A statement goes before a label at the very start, that before labels mentioned in passing;
    "the next label would be <60>" and "not <60>" state none. At last the only label in the reply.
    A reply that was cut may go on to weigh labels: it has to state one, or begin with it.
    """
    text = without_rejected(plain_text(reply), _REJECTABLE)
    found = [list(pattern.finditer(text)) for pattern in _BREAK_POINTS]
    if is_cut:  # also within a number
        found = [[f for f in some if f.end() < len(text)] for some in found]
    stated = [[_named(f) for f in some if not is_hedged(text, f)] for some in found]
    if is_cut:
        return settled(*stated[:-1])
    named = [_named(f) for some in found for f in some]
    return settled(*stated, [*named, *(int(tag) for tag in _TAG.findall(text))])


def _named(found: re.Match[str]) -> int:
    return int(found["label"] or found["then"])


def _cosine(before: Sequence[str], after: Sequence[str]) -> float:
    left, right = Counter(before), Counter(after)
    product = sum(left[term] * right[term] for term in left)
    squares = sum(n * n for n in left.values()) * sum(n * n for n in right.values())
    return product / math.sqrt(squares) if squares else 0.0
