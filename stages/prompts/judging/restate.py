"""Make an answer of known worth of a reference, to audit raters with: see
stages/corpora/audits/known_answers.py."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from pipeline.core.prompts import Prompt
from stages.prompts.judging.verdicts import SAMPLE

How = Literal["reworded", "more_detail", "vague"]


@dataclass(frozen=True)
class RestateReference(Prompt[str]):
    """Say the right answer in other words, with more detail, or so vaguely that it is wrong. The
    value is the new answer, stripped; one that was cut is a problem."""

    name: ClassVar[str] = "restate"
    max_reply_tokens: ClassVar[int] = 256
    is_whole: ClassVar[bool] = True
    question: str
    reference: str
    how: How

    def extractive(self) -> str:
        """The reference: without a model nothing can be said in other words."""
        return self.reference

    def expected(self) -> str:
        return self.reference

    def shown(self) -> Sequence[str]:
        """Without `how`, which chooses among wordings."""
        return self.question, self.reference

    @classmethod
    def samples(cls) -> tuple["RestateReference", ...]:
        question, reference, _ = SAMPLE
        hows: tuple[How, ...] = ("reworded", "more_detail", "vague")
        return tuple(cls(question, reference, how) for how in hows)
