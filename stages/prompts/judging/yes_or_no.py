"""Is an answer right: yes or no? What the strict rater (ReadAgent 4.1) and the five judges
(LongMemEval A.4) share."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from pipeline.core.prompts import Constraint, Prompt
from stages.prompts.judging.verdicts import SAMPLE, Strict, parse_strict
from stages.prompts.parsing.replies import one_of


@dataclass(frozen=True)
class YesOrNo(Prompt[Strict]):
    """`reference`: the right answer, or what the rubric of a subclass makes of it."""

    max_reply_tokens: ClassVar[int] = 10  # of judges: the authors' evaluate_qa.py
    version: ClassVar[int] = 1
    replies: ClassVar[tuple[str, str]] = ("yes", "no")
    form: ClassVar[str | None] = "{}"
    question: str
    answer: str
    reference: str

    def read(self, reply: str, is_cut: bool) -> Strict | None:
        return parse_strict(reply)

    def legal(self, form: str) -> Constraint:
        return one_of(form, self.replies)

    def extractive(self) -> str:
        return self.replies[0 if self.is_right() else 1]

    @abstractmethod
    def is_right(self) -> bool:
        """The extractive engine's verdict, by the words of the answer."""

    def expected(self) -> str:
        return self.replies[1]

    @classmethod
    def samples(cls) -> tuple[Self, ...]:
        return (cls(*SAMPLE),)

    @classmethod
    def form_values(cls) -> Mapping[str, Any]:
        return dict(zip(cls.replies, ("yes", "no"), strict=True))
