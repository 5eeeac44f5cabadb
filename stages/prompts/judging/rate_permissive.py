"""Does an answer agree with a reference in part? The permissive rater of ReadAgent section 4.1."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pipeline.core.prompts import Constraint, Prompt
from stages.prompts.judging.verdicts import (
    AGREES,
    AGREES_IN_PART,
    SAMPLE,
    Verdict,
    agreement,
    parse_verdict,
)
from stages.prompts.parsing.replies import one_of

_REPLIES: Mapping[str, Verdict] = {"Yes": "yes", "Yes, partially": "partially", "No": "no"}


@dataclass(frozen=True)
class PermissiveRating(Prompt[Verdict]):
    """Does the answer agree with the reference? Yes; Yes, partially; No"""

    name: ClassVar[str] = "rate_permissive"
    max_reply_tokens: ClassVar[int] = 16
    version: ClassVar[int] = 1
    form: ClassVar[str | None] = "{}"
    question: str
    answer: str
    reference: str

    def read(self, reply: str, is_cut: bool) -> Verdict | None:
        return parse_verdict(reply)

    def legal(self, form: str) -> Constraint:
        return one_of(form, _REPLIES)

    def extractive(self) -> str:
        share = agreement(self.answer, self.reference)
        if share >= AGREES:
            return "Yes"
        return "Yes, partially" if share >= AGREES_IN_PART else "No"

    def expected(self) -> str:
        return "Yes, partially"

    @classmethod
    def samples(cls) -> tuple["PermissiveRating", ...]:
        return (cls(*SAMPLE),)

    @classmethod
    def form_values(cls) -> Mapping[str, Any]:
        return _REPLIES
