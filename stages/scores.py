"""Score each answer by the family's metrics, and by how much gold evidence was read.

Everything is 0-100. An answer with a problem scores 0 and its rows say `upstream`, so that a mean
over all rows is the headline and a mean over rows without a problem the answered-only one.
"""

import json
from collections.abc import Iterator, Sequence
from typing import ClassVar

from pipeline.ask import Ask
from pipeline.errors import AccountingError, Problem
from pipeline.records import Answer, Question, Record, Score
from pipeline.stage import DocumentRows, Phase, Stage
from stages.metrics import METRICS, covered_chars


class ScoreAnswers(Stage):
    """`metrics` are those of free-form answers; multiple choice has `accuracy`."""

    name: ClassVar[str] = "score"
    version: ClassVar[int] = 1
    phase: ClassVar[Phase] = "scoring"
    reads: ClassVar[tuple[str, ...]] = ("answers",)
    writes: ClassVar[type[Record]] = Score
    reads_gold: ClassVar[bool] = True
    metrics: tuple[str, ...]

    async def run(self, rows: DocumentRows, ask: Ask) -> list[Score]:
        """Questions + Answers -> Scores, in question order, then by metric.

        Every question has an `evidence_recall` row, null without gold evidence. Precision is
        null where nothing was read. No calls.
        """
        answers = {answer.question_id: answer for answer in rows.answers}
        return [
            _row(question, metric, value, problem, answers[question.question_id].skipped)
            for question in rows.questions
            for metric, value, problem in self._values(question, answers[question.question_id])
        ]

    def _values(
        self, question: Question, answer: Answer
    ) -> Iterator[tuple[str, float | None, Problem | None]]:
        if answer.skipped:
            yield "evidence_recall", None, None
            return
        problem: Problem | None = "upstream" if answer.problem else None
        for metric, value in self._quality(question, answer):
            yield metric, value, problem
        unread: Problem | None = "upstream" if answer.num_context_words is None else None
        for metric, share in _evidence(question, answer):
            yield metric, share, unread

    def _quality(self, question: Question, answer: Answer) -> Iterator[tuple[str, float]]:
        if question.options:
            if question.answer_index is not None:
                right = answer.problem is None and answer.answer_index == question.answer_index
                yield "accuracy", 100.0 * right
            return
        if _only_judged(question):
            return
        for metric in self.metrics if question.references else ():
            text = answer.answer if answer.problem is None else None
            yield metric, METRICS[metric](text, question.references) if text else 0.0

    def failed(self, rows: DocumentRows, problem: Problem, detail: str | None) -> list[Score]:
        return [
            _row(question, metric, value, problem, False)
            for question in rows.questions
            for metric, value, _ in self._values(question, _nothing(question))
        ]

    def check(self, rows: DocumentRows, made: Sequence[Record]) -> None:
        """Raise AccountingError unless every question has a score, in order."""
        scored = dict.fromkeys(row.question_id for row in made if isinstance(row, Score))
        if list(scored) != [question.question_id for question in rows.questions]:
            raise AccountingError(f"{rows.document.document_id}: scores do not match questions")


def _only_judged(question: Question) -> bool:
    """Whether no overlap of words says if a reply is right (LongMemEval's rubrics, refusals)."""
    return bool(json.loads(question.metadata).get("only_judged"))


def _evidence(question: Question, answer: Answer) -> Iterator[tuple[str, float | None]]:
    """Shares of the gold characters in the raw text of the final context."""
    gold = covered_chars(question.evidence, question.evidence)
    if not gold:
        yield "evidence_recall", None
        return
    hit = covered_chars(question.evidence, answer.context_spans)
    read = covered_chars(answer.context_spans, answer.context_spans)
    yield "evidence_recall", 100 * hit / gold
    yield "evidence_any_hit", 100.0 * (hit > 0)
    yield "evidence_full", 100.0 * (hit == gold)
    yield "evidence_precision", 100 * hit / read if read else None


def _nothing(question: Question) -> Answer:
    return Answer(
        document_id=question.document_id,
        question_id=question.question_id,
        reader="",
        answer=None,
        problem="upstream",
    )


def _row(
    question: Question, metric: str, value: float | None, problem: Problem | None, skipped: bool
) -> Score:
    return Score(
        document_id=question.document_id,
        question_id=question.question_id,
        metric=metric,
        value=value,
        skipped=skipped,
        problem=problem,
    )
