"""Does an answer agree with a reference? The strict rater of ReadAgent section 4.1."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pipeline.prompts import Constraint, Prompt
from stages.prompts.replies import one_of
from stages.prompts.verdicts import AGREES, SAMPLE, Strict, agreement, parse_strict

_REPLIES: Mapping[str, Strict] = {"YES": "yes", "NO": "no"}


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
        return one_of(form, _REPLIES)

    def extractive(self) -> str:
        return "YES" if agreement(self.answer, self.reference) >= AGREES else "NO"

    def expected(self) -> str:
        return "NO"

    @classmethod
    def samples(cls) -> tuple["StrictRating", ...]:
        return (cls(*SAMPLE),)

    @classmethod
    def form_values(cls) -> Mapping[str, Any]:
        return _REPLIES
