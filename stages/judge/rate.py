"""Rate each answer by a strict and a permissive rater prompt, or by its question's type.

ReadAgent section 4.1: both prompts are asked for every answer and reference; the view `lr` combines
the verdicts into LR-1 and LR-2. LongMemEval A.4, figure 10: an answer is rated once, by the rubric
of its question's type. A missing answer, or one with a problem, is wrong. An answer whose verdict
cannot be read is unscored, as a rater's failure says nothing about the method (docs/deviations.md).
"""

import asyncio
from abc import ABC
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

from pipeline.asking.ask import Ask
from pipeline.core.calls import Subject
from pipeline.core.errors import Problem
from pipeline.core.prompts import Prompt
from pipeline.core.registry import first_sentence
from pipeline.core.rows import Question, UnitRows
from pipeline.work.stage import Column, Columns, Role, Stage
from stages.corpora.audits.known_answers import ANOTHER_REFERENCE
from stages.prompts import judging
from stages.tables.answers import VALUES, Answer, Rating, register_rubric

Rubrics = Mapping[str, type[Prompt[Any]]]


class Wanted(NamedTuple):
    """A verdict to ask for."""

    rubric: str
    reference_index: int | None  # None: all are shown
    prompt: Prompt[Any]


_judged = partial(Column, more_is_better=True, is_judged=True)


class AnswerRater(Stage, ABC):
    """Base class of judges: writes a row per verdict.

    Questions with options or without references give one skipped row; an answer with a problem
    gives an `upstream` row of value 0 for each verdict. If an audit's answer is one of the
    references that a verdict compares it with, the row is skipped.

    `rubrics` has the prompts by rubric; the verdicts make a measure of the rubric's name
    (docs/extending.md has an example).
    """

    rubrics: ClassVar[Rubrics] = {}
    role: ClassVar[Role] = "judge"
    reads = (Answer,)
    writes = Rating
    document_fields = ()
    question_fields: ClassVar[tuple[str, ...]] = ("question", "options", "references")

    @classmethod
    def __pydantic_init_subclass__(cls, **more: Any) -> None:
        rubrics = cls.__dict__.get("rubrics", {})
        cls.prompts = tuple(cls.rubrics.values())
        if rubrics and "report_columns" not in cls.__dict__:
            # The share of yes of each rubric; a partial yes counts half.
            columns = (
                _judged(rubric, rubric, 53 + number, about=first_sentence(prompt))
                for number, (rubric, prompt) in enumerate(rubrics.items())
            )
            cls.report_columns = {"free": tuple(columns)}
        super().__pydantic_init_subclass__(**more)
        for rubric in rubrics:
            register_rubric(rubric, cls)

    def wanted(self, question: Question, answer: str) -> list[Wanted]:
        """The verdicts to ask for on an answer to a question with references, by reference. By
        default one for each rubric, whose prompt shows question, answer and all references."""
        shown = question.question, answer, "\nor: ".join(question.references)
        prompts: Mapping[str, Any] = self.rubrics
        return [Wanted(rubric, None, prompt(*shown)) for rubric, prompt in prompts.items()]

    def why_unusable(self, rows: UnitRows) -> str | None:
        return None  # `run` checks each answer's problem

    async def run(self, rows: UnitRows, ask: Ask) -> list[Rating]:
        """Questions + Answers -> Ratings, in question order, then by reference.

        Problems: upstream; truncated, unparseable (a verdict that cannot be parsed is None, never
        "no"); context_overflow, timeout, refused, engine_failed.
        """
        answers = {answer.question_id: answer for answer in rows[Answer]}
        pairs = [(question, answers[question.question_id]) for question in rows.questions]
        rated = await asyncio.gather(*(self._question(*pair, ask) for pair in pairs))
        return [rating for ratings in rated for rating in ratings]

    async def _question(self, question: Question, answer: Answer, ask: Ask) -> list[Rating]:
        unrated = [
            replace(row, rater=ask.rater_name, rater_is_model=ask.is_model)
            for row in self._unrated(question)
        ]
        if answer.skipped or unrated[0].skipped:
            return [replace(unrated[0], rubric=None, reference_index=None, skipped=True)]
        if answer.problem is not None:
            detail = f"answer: {answer.problem}"
            return [replace(row, value=0.0, problem="upstream", detail=detail) for row in unrated]
        wanted = self.wanted(question, answer.judged or answer.answer or "")
        ratings = []
        for row, (_, index, prompt) in zip(unrated, wanted, strict=True):
            shown = question.references if index is None else question.references[index : index + 1]
            is_shown = answer.detail == ANOTHER_REFERENCE and answer.answer in shown
            ratings.append(_rated(replace(row, skipped=is_shown), prompt, ask))
        return list(await asyncio.gather(*ratings))

    def _unrated(self, question: Question) -> list[Rating]:
        row = Rating.about(question)
        if question.options or not question.references:
            return [replace(row, skipped=True)]
        return [
            replace(row, rubric=rubric, reference_index=index)
            for rubric, index, _ in self.wanted(question, "")
        ]

    def failed(self, rows: UnitRows, problem: Problem, detail: str | None) -> list[Rating]:
        unrated = (row for question in rows.questions for row in self._unrated(question))
        return [replace(row, problem=problem, detail=detail) for row in unrated]


async def _rated(row: Rating, prompt: Prompt[Any], ask: Ask) -> Rating:
    if row.skipped:
        return row
    subject = Subject(question_id=row.question_id, reference_index=row.reference_index)
    reply = await ask(prompt, subject)
    value = None if reply.value is None else VALUES[reply.value]
    return replace(row, label=reply.value, value=value, problem=reply.problem)


_EXACT = (
    "share of answers that the rater calls exact, of those that it scored: yes by the strict or "
    "the permissive prompt for any reference (ReadAgent section 4.1)"
)
_PARTLY = "the same of exact or partial (permissive prompt)"
_RIGHT = (
    "share of answers that the rater calls right by the rubric of the question's type, of those "
    "that it scored"
)
_MEAN = "mean of the means of that over question types"
_BY_TYPE = ("accuracy", "question_type")


class RateAnswers(AnswerRater):
    """Two rows per answer and reference: strict, then permissive."""

    name = "rate"
    version = 2
    rubrics: ClassVar[Rubrics] = {
        "strict": judging.StrictRating,
        "permissive": judging.PermissiveRating,
    }
    report_columns: ClassVar[Columns] = {
        "free": (
            _judged("lr_1", "LR-1", 30, about=_EXACT),
            _judged("lr_2", "LR-2", 31, about=_PARTLY, right_labels=("yes", "partially")),
        )
    }

    def wanted(self, question: Question, answer: str) -> list[Wanted]:
        prompts: Mapping[str, Any] = self.rubrics
        return [
            Wanted(rubric, index, prompt(question.question, answer, reference))
            for index, reference in enumerate(question.references)
            for rubric, prompt in prompts.items()
        ]


class RateByType(AnswerRater):
    """One row per answer. Several references are alternatives, shown together."""

    name = "rate"
    kind = "by_type"
    version = 1
    rubrics: ClassVar[Rubrics] = {
        "generic": judging.JudgeGeneric,
        "temporal": judging.JudgeTemporal,
        "knowledge_update": judging.JudgeKnowledgeUpdate,
        "preference": judging.JudgePreference,
        "abstention": judging.JudgeAbstention,
    }
    report_columns: ClassVar[Columns] = {
        "free": (
            _judged("accuracy", "accuracy", 50, about=_RIGHT),
            _judged("accuracy_by_type", "by type", 51, False, mean_of_means=_BY_TYPE, about=_MEAN),
            _judged("accuracy_abstention", "abstention", 52,
                    about="the same of abstention questions alone"),
        )
    }  # fmt: skip
    question_fields = (*AnswerRater.question_fields, "question_type", "task")

    def wanted(self, question: Question, answer: str) -> list[Wanted]:
        rubric = judging.rubric_of(question.task, question.question_type)
        return [wanted for wanted in super().wanted(question, answer) if wanted.rubric == rubric]
