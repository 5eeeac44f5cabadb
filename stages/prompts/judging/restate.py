"""Make an answer of known worth of a reference, to audit raters with: see
stages/corpora/audits/known_answers.py."""

from dataclasses import dataclass, replace
from typing import ClassVar

from pipeline.core.prompts import Prompt
from stages.prompts.judging.verdicts import SAMPLE


@dataclass(frozen=True)
class RestateReference(Prompt[str]):
    """Say the right answer in other words; at greater length; or so vaguely that it is wrong. The
    value is the new answer, stripped; one that was cut is a problem."""

    name: ClassVar[str] = "restate"
    max_reply_tokens: ClassVar[int] = 256
    is_whole: ClassVar[bool] = True
    question: str
    reference: str
    is_longer: bool = False
    is_vague: bool = False

    def extractive(self) -> str:
        """The reference: without a model nothing can be said in other words."""
        return self.reference

    def expected(self) -> str:
        return self.reference

    @classmethod
    def samples(cls) -> tuple["RestateReference", ...]:
        question, reference, _ = SAMPLE
        own = cls(question, reference)
        return (own, replace(own, is_longer=True), replace(own, is_vague=True))
