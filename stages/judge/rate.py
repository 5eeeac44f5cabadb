"""Rate each answer against each reference, by a strict and a permissive rater prompt.

ReadAgent section 4.1: both prompts are asked for every answer. The `lr` view combines the verdicts
into exact, partial, none or unscored, and the report's LR-1 and LR-2: shares of the answers that
the rater scored, as its failures say nothing of the method.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Literal

from pipeline.core.prompts import Prompt
from pipeline.core.rows import Question
from pipeline.work.stage import Column
from stages.judge.answer_rater import AnswerRater, Wanted
from stages.prompts.judging.rate_permissive import PermissiveRating
from stages.prompts.judging.rate_strict import StrictRating

_EXACT = (
    "share of answers that the rater calls exact, of those that it scored: yes by the strict or "
    "the permissive prompt for any reference"
)


class RateAnswers(AnswerRater):
    """Two rows per answer and reference: strict, then permissive."""

    name: ClassVar[str] = "rate"
    version: ClassVar[int] = 2
    prompts: ClassVar[tuple[type[Prompt[Any]], ...]] = (StrictRating, PermissiveRating)

    def columns(self) -> Mapping[Literal["any", "free", "choice"], tuple[Column, ...]]:
        judged = partial(Column, more_is_better=True, is_judged=True)
        lr_2 = "the same of exact or partial (permissive prompt)"
        return {
            "free": (
                judged("lr_1", "LR-1", 30, about=_EXACT),
                judged("lr_2", "LR-2", 31, about=lr_2),
            )
        }

    def wanted(self, question: Question, answer: str) -> list[Wanted]:
        return [
            wanted
            for index, reference in enumerate(question.references)
            for wanted in (
                Wanted("strict", index, StrictRating(question.question, answer, reference)),
                Wanted("permissive", index, PermissiveRating(question.question, answer, reference)),
            )
        ]
