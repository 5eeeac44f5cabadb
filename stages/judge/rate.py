"""Rate each answer against each reference, by a strict and a permissive rater prompt.

ReadAgent section 4.1: both prompts are asked for every answer. The `lr` view combines the verdicts
into exact, partial, none or unscored, and the report's LR-1 and LR-2: shares of the answers that
the rater scored, as its failures say nothing of the method.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from pipeline.ask import Ask
from pipeline.calls import Subject
from pipeline.errors import Problem
from pipeline.prompts import Prompt
from pipeline.rows import Question, QuestionRow, Record, UnitRows
from pipeline.stage import Column, Role, Stage, refuse_gaps
from pipeline.trace_lines import Line
from stages.prompts.rate_permissive import PermissiveRating
from stages.prompts.rate_strict import StrictRating
from stages.read.answer import Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Rating(QuestionRow):
    """One answer rated against one reference by the strict and the permissive rater prompt."""

    table: ClassVar[str] = "ratings"
    key: ClassVar[tuple[str, ...]] = ("question_id", "reference_index")
    views: ClassVar[tuple[str, ...]] = (
        "create view {prefix}raters as "
        "select distinct {run}step_id, rater from {prefix}ratings where rater_is_model",
        # Over references exact wins, else any unscored makes it unscored, else partial wins
        # (ReadAgent section 4.1). An answer with a problem is `none`. A step has one rater; rows
        # of a failed unit have an empty name, so the step's name is filled in.
        """create view {prefix}lr as
        with verdicts as (
          select * exclude (rater, rater_is_model), max(rater) over mine as rater,
            bool_or(rater_is_model) over mine as rater_is_model, case
            when strict = 'yes' or permissive = 'yes' then 'exact'
            when strict = 'no' and permissive = 'partially' then 'partial'
            when strict = 'no' and permissive = 'no' then 'none'
            when problem = 'upstream' then 'none'
            else 'unscored' end as verdict
          from {prefix}ratings where not skipped window mine as (partition by step_id))
        select {run}corpus, step_id, method, repeat, document_id, question_id, rater,
          rater_is_model, case when bool_or(verdict = 'exact') then 'exact'
            when bool_or(verdict = 'unscored') then 'unscored'
            when bool_or(verdict = 'partial') then 'partial'
            else 'none' end as lr
        from verdicts group by all""",
    )
    measures: ClassVar[str | None] = """
        select method, repeat, document_id, question_id, rater,
          a.problem, m.measure, (100 * list_contains(m.verdicts, lr)::int)::double as value
        from lr join answers a using (method, repeat, document_id, question_id)
        cross join (values ('lr_1', ['exact']), ('lr_2', ['exact', 'partial']))
          m(measure, verdicts)
        where rater_is_model and lr <> 'unscored'"""
    counts: ClassVar[str | None] = """
        select method, document_id, question_id, rater, 'unscored' as counted,
          (lr = 'unscored')::int as value
        from lr where rater_is_model"""
    rater: str  # the engine and 4 hex of its identity
    rater_is_model: bool
    reference_index: int
    strict: str | None = None  # yes, no
    permissive: str | None = None  # yes, partially, no
    skipped: bool = False  # multiple choice or no reference: nothing to rate

    @classmethod
    def trace(cls, row: Mapping[str, Any]) -> Sequence[Line]:
        if row["skipped"]:
            return []
        verdicts = f"strict {row['strict'] or '-'}, permissive {row['permissive'] or '-'}"
        problem = f" ({row['problem']})" if row["problem"] else ""
        return [f"{row['rater']} on reference {row['reference_index']}: {verdicts}{problem}"]

    @classmethod
    def trace_all(cls, rows: Sequence[Mapping[str, Any]]) -> Sequence[Line]:
        """By rater, then by reference."""
        by_rater = sorted(rows, key=lambda row: (row["rater"], row["reference_index"]))
        return [line for row in by_rater for line in cls.trace(row)]


class RateAnswers(Stage):
    """One row per answer and reference. Questions with options or without references give a skipped
    row, answers with a problem an `upstream` row."""

    name: ClassVar[str] = "rate"
    version: ClassVar[int] = 1
    role: ClassVar[Role] = "judge"
    reads: ClassVar[tuple[type[Record], ...]] = (Answer,)
    writes: ClassVar[type[Record]] = Rating
    prompts: ClassVar[tuple[type[Prompt[Any]], ...]] = (StrictRating, PermissiveRating)
    document_fields: ClassVar[tuple[str, ...]] = ()
    question_fields: ClassVar[tuple[str, ...]] = ("question", "options", "references")

    def lack(self, rows: UnitRows) -> str | None:
        """Null: `run` looks at each answer's problem."""
        return None

    def columns(self) -> Mapping[Literal["any", "free", "choice"], tuple[Column, ...]]:
        return {"free": (Column("lr_1", "LR-1", 30), Column("lr_2", "LR-2", 31))}

    async def run(self, rows: UnitRows, ask: Ask) -> list[Rating]:
        """Questions + Answers -> Ratings, in question order, then by reference.

        Problems: upstream; truncated, unparseable (a verdict that cannot be parsed is null, never
        "no"); context_overflow, timeout, engine_failed.
        """
        answers = {answer.question_id: answer for answer in rows[Answer]}
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
        texts = (question.question, answer.answer or "", reference)
        strict, permissive = await asyncio.gather(
            ask(StrictRating(*texts), subject), ask(PermissiveRating(*texts), subject)
        )
        return replace(
            empty,
            reference_index=index,
            strict=strict.value,
            permissive=permissive.value,
            problem=strict.problem or permissive.problem,
        )

    def failed(self, rows: UnitRows, problem: Problem, detail: str | None) -> list[Rating]:
        return [
            replace(_empty(question, "", False), problem=problem, detail=detail)
            for question in rows.questions
        ]

    def check(self, rows: UnitRows, made: Sequence[Record]) -> None:
        """Raise AccountingError unless every question has ratings, numbered by reference from 0."""
        refuse_gaps(rows, made, "reference_index")


def _empty(question: Question, rater: str, is_model: bool) -> Rating:
    return Rating(
        document_id=question.document_id,
        question_id=question.question_id,
        rater=rater,
        rater_is_model=is_model,
        reference_index=0,
    )
