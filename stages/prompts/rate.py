"""Does an answer agree with a reference? The strict and the permissive rater of ReadAgent 4.1."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from pipeline.prompts import Constraint, Prompt
from stages.prompts.replies import one_of, plain_text
from stages.text.ranking import terms

Strict = Literal["yes", "no"]
Permissive = Literal["yes", "partially", "no"]
_STRICT: Mapping[str, Strict] = {"YES": "yes", "NO": "no"}
_PERMISSIVE: Mapping[str, Permissive] = {"Yes": "yes", "Yes, partially": "partially", "No": "no"}
_AGREES, _AGREES_PARTLY = 0.5, 0.2  # F1 of terms
_VERDICT = re.compile(
    r"\A\W*(?:(?:final\s+)?(?:answer|verdict|rating|judge?ment)\s*(?:is\b|:)\W*)?"
    r"(?P<first>yes|no|partial(?:ly)?|partly)\b"
    r"(?:[^\w.!;:]*\b(?:and|or|but|nor)?[^\w.!;:]*\b(?P<second>yes|no)\b)?",
    re.IGNORECASE,
)
_PARTIAL = re.compile(r"\b(?:partial(?:ly)?|partly|in\s+part)\b", re.IGNORECASE)
_ONLY_PARTIAL = re.compile(r"\W+(?:but\s+)?(?:only\s+)?part(?:ial|ly)", re.IGNORECASE)


_SAMPLE = ("Who rang {{ it }}?", "The sexton <1>.", "Nobody; {% no %}.")


@dataclass(frozen=True)
class StrictRating(Prompt[Strict]):
    """Does the answer agree with the reference? YES or NO"""

    name: ClassVar[str] = "rate_strict"
    max_reply_tokens: ClassVar[int] = 16
    form: ClassVar[str | None] = "{}"
    question: str
    answer: str
    reference: str

    def read(self, reply: str, is_cut: bool) -> Strict | None:
        return parse_strict(reply)

    def legal(self, form: str) -> Constraint:
        return one_of(form, _STRICT)

    def extractive(self) -> str:
        return "YES" if _agreement(self.answer, self.reference) >= _AGREES else "NO"

    def expected(self) -> str:
        return "NO"

    @classmethod
    def samples(cls) -> tuple["StrictRating", ...]:
        return (cls(*_SAMPLE),)

    @classmethod
    def form_values(cls) -> Mapping[str, Any]:
        return _STRICT


@dataclass(frozen=True)
class PermissiveRating(Prompt[Permissive]):
    """Does the answer agree with the reference? Yes; Yes, partially; No"""

    name: ClassVar[str] = "rate_permissive"
    max_reply_tokens: ClassVar[int] = 16
    form: ClassVar[str | None] = "{}"
    question: str
    answer: str
    reference: str

    def read(self, reply: str, is_cut: bool) -> Permissive | None:
        return parse_permissive(reply)

    def legal(self, form: str) -> Constraint:
        return one_of(form, _PERMISSIVE)

    def extractive(self) -> str:
        agreement = _agreement(self.answer, self.reference)
        if agreement >= _AGREES:
            return "Yes"
        return "Yes, partially" if agreement >= _AGREES_PARTLY else "No"

    def expected(self) -> str:
        return "Yes, partially"

    @classmethod
    def samples(cls) -> tuple["PermissiveRating", ...]:
        return (cls(*_SAMPLE),)

    @classmethod
    def form_values(cls) -> Mapping[str, Any]:
        return _PERMISSIVE


def parse_strict(reply: str) -> Strict | None:
    """The strict rater's verdict (ReadAgent 4.1) by its first word: `YES` or `NO`."""
    verdict = parse_permissive(reply)
    return None if verdict == "partially" else verdict


def parse_permissive(reply: str) -> Permissive | None:
    """The permissive rater's verdict (ReadAgent 4.1): `Yes`, `Yes, partially` or `No`.

    The first word decides; a yes whose first sentence says "partially" is partial. "Yes and no"
    is neither.
    """
    text = plain_text(reply)
    found = _VERDICT.match(text)
    if found is None:
        return None
    first, second = found["first"].lower(), (found["second"] or "").lower()
    if first not in ("yes", "no"):
        return None if second == "no" else "partially"
    if second not in ("", first):
        return None
    if first == "yes":
        return "partially" if _PARTIAL.search(re.split(r"[.!?\n]", text)[0]) else "yes"
    return None if _ONLY_PARTIAL.match(text, found.end()) else "no"


def _agreement(answer: str, reference: str) -> float:
    """F1 of the terms, 0 to 1; of all words where one of the two has only stop words."""
    made, wanted = terms(answer), terms(reference)
    if not made or not wanted:
        made, wanted = (re.findall(r"\w+", text.lower()) for text in (answer, reference))
    shared = sum((Counter(made) & Counter(wanted)).values())
    return 2 * shared / (len(made) + len(wanted)) if shared else 0.0
