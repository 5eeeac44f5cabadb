"""Is an answer right, by a rubric? What the five judge prompts of LongMemEval A.4 share."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from pipeline.prompts import Constraint, Prompt
from stages.prompts.replies import one_of
from stages.prompts.verdicts import SAMPLE, Strict, parse_strict

_REPLIES: Mapping[str, Strict] = {"yes": "yes", "no": "no"}


@dataclass(frozen=True)
class YesOrNo(Prompt[Strict]):
    """`reference`: the right answer, or what the rubric of a subclass makes of it."""

    max_reply_tokens: ClassVar[int] = 10  # the authors' evaluate_qa.py
    form: ClassVar[str | None] = "{}"
    question: str
    answer: str
    reference: str

    def read(self, reply: str, is_cut: bool) -> Strict | None:
        return parse_strict(reply)

    def legal(self, form: str) -> Constraint:
        return one_of(form, _REPLIES)

    def extractive(self) -> str:
        return "yes" if self.is_right() else "no"

    def is_right(self) -> bool:
        """The extractive engine's verdict, by the words of the answer."""
        raise NotImplementedError

    def expected(self) -> str:
        return "no"

    @classmethod
    def samples(cls) -> tuple[Self, ...]:
        return (cls(*SAMPLE),)

    @classmethod
    def form_values(cls) -> Mapping[str, Any]:
        return _REPLIES
