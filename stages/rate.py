"""Rate each answer against each reference, by a strict and a permissive rater prompt.

ReadAgent section 4.1: both prompts are put to every answer. What the verdicts add up to (exact,
partial, none, unscored; LR-1, LR-2) is the `lr` view's.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from pydantic import PositiveInt

from pipeline.ask import Ask, Subject
from pipeline.engine import Reply
from pipeline.errors import Problem
from pipeline.records import Answer, Question, Rating, Record
from pipeline.stage import DocumentRows, Phase, Stage, refuse_gaps
from stages import constraints
from stages.fields import PermissiveRating, StrictRating
from stages.parsing import parse_permissive, parse_strict


class RateAnswers(Stage):
    """One row per answer and reference. Multiple choice and questions without references are
    skipped rows; an answer that has none to rate is an `upstream` row."""

    name: ClassVar[str] = "rate"
    version: ClassVar[int] = 1
    phase: ClassVar[Phase] = "rating"
    reads: ClassVar[tuple[str, ...]] = ("answers",)
    writes: ClassVar[type[Record]] = Rating
    prompts: ClassVar[tuple[str, ...]] = ("rate_strict", "rate_permissive")
    reads_gold: ClassVar[bool] = True
    max_reply_tokens: PositiveInt

    async def run(self, rows: DocumentRows, ask: Ask) -> list[Rating]:
        """Questions + Answers -> Ratings, in question order, then by reference.

        Problems: upstream; unparseable (a verdict that cannot be read is null, never "no"),
        context_overflow, timeout, engine_failed.
        """
        answers = {answer.question_id: answer for answer in rows.answers}
        rated = await asyncio.gather(
            *(self._question(question, answers[question.question_id], ask)
              for question in rows.questions)
        )  # fmt: skip
        return [rating for ratings in rated for rating in ratings]

    async def _question(self, question: Question, answer: Answer, ask: Ask) -> list[Rating]:
        empty = _empty(question, ask.rater_name, ask.is_model)
        if question.options or not question.references or answer.skipped:
            return [replace(empty, skipped=True)]
        if answer.problem is not None:
            return [replace(empty, problem="upstream", detail=f"answer: {answer.problem}")]
        references = enumerate(question.references)
        pairs = (self._reference(empty, question, answer, i, r, ask) for i, r in references)
        return list(await asyncio.gather(*pairs))

    async def _reference(
        self,
        empty: Rating,
        question: Question,
        answer: Answer,
        index: int,
        reference: str,
        ask: Ask,
    ) -> Rating:
        subject = Subject(question_id=question.question_id, reference_index=index)
        tokens = self.max_reply_tokens
        texts = (question.question, answer.answer or "", reference)
        exact, lenient = StrictRating(*texts), PermissiveRating(*texts)
        strict, permissive = await asyncio.gather(
            ask(exact, tokens, subject, constraints.strict(ask.form(exact.prompt))),
            ask(lenient, tokens, subject, constraints.permissive(ask.form(lenient.prompt))),
        )
        verdicts = parse_strict(strict.text), parse_permissive(permissive.text)
        problem = _problem(strict, verdicts[0]) or _problem(permissive, verdicts[1])
        return replace(
            empty,
            reference_index=index,
            strict=verdicts[0],
            permissive=verdicts[1],
            problem=problem,
        )

    def failed(self, rows: DocumentRows, problem: Problem, detail: str | None) -> list[Rating]:
        return [
            replace(_empty(question, "", False), problem=problem, detail=detail)
            for question in rows.questions
        ]

    def check(self, rows: DocumentRows, made: Sequence[Record]) -> None:
        """Raise AccountingError unless every question has its ratings, by reference from 0."""
        refuse_gaps(rows, made, "reference_index")


def _problem(reply: Reply, verdict: str | None) -> Problem | None:
    """A verdict that was read is no problem, even where what followed it was cut off."""
    return None if verdict else (reply.problem or "unparseable")


def _empty(question: Question, rater: str, is_model: bool) -> Rating:
    return Rating(
        document_id=question.document_id,
        question_id=question.question_id,
        rater=rater,
        rater_is_model=is_model,
        reference_index=0,
    )
