"""Rate each answer by a strict and a permissive rater prompt, or by its question's type.

ReadAgent section 4.1: both prompts are asked for every answer and reference. The `lr` view combines
the verdicts into exact, partial, none or unscored, and the report's LR-1 and LR-2: shares of the
answers that the rater scored, as its failures say nothing of the method.

LongMemEval A.4, figure 10: once by the rubric of the type. `accuracy` is the share of right
answers, overall and as the mean over question types; abstention questions count in their own types,
too, and stand apart beside them, all as published. Three things differ from the authors' script. A
missing answer is wrong; theirs leaves it out. One with a problem is wrong, as in all means: one
that was truncated and, unless raters see the whole reply (`judged`), one without an answer after
its notes; theirs judges both. A reply is parsed as a verdict, and one that is none leaves the
answer unscored; theirs takes every reply that has "yes" in it for yes ("No, yesterday it was ..."),
every other for no.
"""

from collections.abc import Mapping
from functools import partial
from typing import ClassVar

from pipeline.core.rows import Question
from pipeline.work.stage import Column, Columns
from stages.judge.answer_rater import AnswerRater, Rubrics, Wanted
from stages.prompts.judging import (
    JudgeAbstention,
    JudgeGeneric,
    JudgeKnowledgeUpdate,
    JudgePreference,
    JudgeTemporal,
    PermissiveRating,
    StrictRating,
    YesOrNo,
    rubric_of,
)

_judged = partial(Column, more_is_better=True, is_judged=True)
_EXACT = (
    "share of answers that the rater calls exact, of those that it scored: yes by the strict or "
    "the permissive prompt for any reference (ReadAgent section 4.1)"
)
_PARTLY = "the same of exact or partial (permissive prompt)"


class RateAnswers(AnswerRater):
    """Two rows per answer and reference: strict, then permissive."""

    name = "rate"
    version = 2
    rubrics: ClassVar[Rubrics] = {"strict": StrictRating, "permissive": PermissiveRating}
    report_columns: ClassVar[Columns] = {
        "free": (
            _judged("lr_1", "LR-1", 30, about=_EXACT),
            _judged("lr_2", "LR-2", 31, about=_PARTLY, right_labels=("yes", "partially")),
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


_PROMPTS: Mapping[str, type[YesOrNo]] = {
    "generic": JudgeGeneric,
    "temporal": JudgeTemporal,
    "knowledge_update": JudgeKnowledgeUpdate,
    "preference": JudgePreference,
    "abstention": JudgeAbstention,
}


_RIGHT = (
    "share of answers that the rater calls right by the rubric of the question's type, of those "
    "that it scored"
)
_BY_TYPE = (
    _judged("accuracy", "accuracy", 50, about=_RIGHT),
    _judged(
        "accuracy_by_type", "by type", 51, False, mean_of_means=("accuracy", "question_type"),
        about="mean of the means of that over question types",
    ),
    _judged(
        "accuracy_abstention", "abstention", 52, about="the same of abstention questions alone"
    ),
)  # fmt: skip


class RateByType(AnswerRater):
    """One row per answer. Several references are alternatives, shown together."""

    name = "rate"
    kind = "by_type"
    version = 1
    rubrics: ClassVar[Rubrics] = _PROMPTS
    report_columns: ClassVar[Columns] = {"free": _BY_TYPE}
    question_fields = (
        "question", "options", "references", "question_type", "task",
    )  # fmt: skip

    def wanted(self, question: Question, answer: str) -> list[Wanted]:
        rubric = rubric_of(question.task, question.question_type)
        reference = "\nor: ".join(question.references)
        return [Wanted(rubric, None, _PROMPTS[rubric](question.question, answer, reference))]
