"""Score each answer by the family's metrics, and by how much gold evidence was read, 0-100.

An answer with a problem scores 0, and its rows have problem `upstream`: the mean over all rows is
the headline, the mean over rows without a problem covers answered questions only. A metric is None
for a question that it does not apply to, and, with problem `unit_failed`, where its function
raises. A metric that is no mean over questions (`metrics.PARTS`) has a row for each of its parts;
`scrolls_rouge` of a run is
`select method, product(mean) ** (1 / count(*)) from (select method, metric, avg(value) as mean
from scores where metric like 'scrolls_%' group by all) group by method`.
"""

from asyncio import to_thread
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, ClassVar

from pydantic import field_validator

from pipeline.asking.ask import Ask
from pipeline.core.errors import Problem, contained
from pipeline.core.rows import Question, UnitRows
from pipeline.work.stage import GOLD, Column, Columns, Stage
from stages.read.answer_from_context import GIVEN
from stages.score.metrics import METRICS, PARTS
from stages.tables.answers import Answer, Score
from stages.tables.lookups import RANKING_MEASURES
from stages.text.words import covered_chars

_BETTER = partial(Column, more_is_better=True)
_CHOICE = _BETTER(
    "accuracy", "accuracy", 50,
    about="share of multiple-choice questions whose right option was chosen",
)  # fmt: skip
_OF_EVIDENCE = (
    Column(
        "evidence_recall", "recall", 60,
        about="share of the gold evidence, in characters, that is in the raw text of the final "
        "context",
    ),
    Column(
        "evidence_any_hit", "any-hit", 70, has_interval=False,
        about="share of answers with any gold evidence there",
    ),
)  # fmt: skip


class ScoreAnswers(Stage):
    """`metrics` apply to free-form answers; multiple choice is scored by `accuracy`. Among them may
    be RANKING_MEASURES, which are columns of the report and no scores."""

    name = "score"
    version = 2
    reads = (Answer,)
    writes = Score
    document_fields = ()
    question_fields = ("question", "options", "only_judged", "task", "classes", *GOLD)
    report_columns: ClassVar[Columns] = {"choice": (_CHOICE,), "any": _OF_EVIDENCE}
    metrics: tuple[str, ...]

    @field_validator("metrics", mode="before")
    @classmethod
    def _known(cls, metrics: object) -> tuple[str, ...]:
        if not isinstance(metrics, list | tuple):
            raise ValueError("write a list of names")
        names = [*METRICS, *PARTS, *RANKING_MEASURES]
        for name in metrics:
            if name not in names:
                raise ValueError(f"{str(name)[:80]!r} is none of {', '.join(names)}")
        return tuple(metrics)

    def hashed(self) -> dict[str, Any]:
        """Adds the versions of a plugin's metrics, so that answers are scored anew where a metric
        has changed, and their groups, which the view `measures` reads there."""
        metrics = {name: METRICS[name] for name in self.metrics if name in METRICS}
        versions = {name: m.version for name, m in metrics.items() if m.version is not None}
        groups = {name: m.groups for name, m in metrics.items() if m.groups}
        added = {"versions": versions, "groups": groups}
        return {**super().hashed(), **{key: value for key, value in added.items() if value}}

    def why_unusable(self, rows: UnitRows) -> str | None:
        return None  # `run` checks each answer's problem

    def columns(self) -> Columns:
        metrics = [
            _BETTER(name, name, 40 + number, geometric_mean_of=PARTS.get(name, ()),
                    about=METRICS.about[name])
            for number, name in enumerate(self.metrics)
            if name not in RANKING_MEASURES
        ]  # fmt: skip
        rankings = [name for name in self.metrics if name in RANKING_MEASURES]
        of_rankings = (Column(name, name, 75, about=RANKING_MEASURES[name]) for name in rankings)
        evidence = self.report_columns["any"]
        return {**self.report_columns, "free": tuple(metrics), "any": (*evidence, *of_rankings)}

    async def run(self, rows: UnitRows, ask: Ask) -> list[Score]:
        """Questions + Answers -> Scores, in question order, then by metric.

        Every question has an `evidence_recall` row, None without gold evidence. Precision is None
        where no raw text was read. No calls. Problems: upstream; unit_failed (a metric raised).
        """
        answers = {answer.question_id: answer for answer in rows[Answer]}

        def scores() -> list[Score]:
            return [
                score for q in rows.questions for score in self._scores(q, answers[q.question_id])
            ]

        # In a thread: long answers take tenths of a second, in which no request would be sent.
        return await to_thread(scores)

    def _scores(self, question: Question, answer: Answer) -> Iterator[Score]:
        row = partial(Score.about, question, skipped=answer.skipped)
        if answer.skipped:
            yield row(metric="evidence_recall", value=None)
            return
        problem: Problem | None = "upstream" if answer.problem else None
        if question.options:
            if question.answer_index is not None:
                is_right = problem is None and answer.answer_index == question.answer_index
                yield row(metric="accuracy", value=100.0 * is_right, problem=problem)
        elif question.references and not question.only_judged:
            text = answer.answer if problem is None else None
            parts = (PARTS.get(m, (m,)) for m in self.metrics if m not in RANKING_MEASURES)
            for name in dict.fromkeys(chain.from_iterable(parts)):
                metric, value = METRICS[name], None
                with contained() as raised:
                    if metric.applies(question):
                        value = metric.score(text, question) if text else 0.0
                if raised.error is not None:
                    trace = raised.trace()
                    yield row(metric=name, value=None, problem="unit_failed", detail=trace)
                else:
                    yield row(metric=name, value=value, problem=problem)
        if answer.reader == GIVEN:
            yield row(metric="evidence_recall", value=None, problem=problem)
            return
        unread: Problem | None = "upstream" if answer.num_context_words is None else None
        for name, share in _evidence(question, answer):
            yield row(metric=name, value=share, problem=unread)

    def failed(self, rows: UnitRows, problem: Problem, detail: str | None) -> list[Score]:
        return [
            replace(score, problem=problem, detail=detail)
            for question in rows.questions
            for score in self._scores(question, Answer.about(question, problem="upstream"))
        ]


def _evidence(question: Question, answer: Answer) -> Iterator[tuple[str, float | None]]:
    """The measures of gold evidence in the raw text of the final context, by characters."""
    gold = covered_chars(question.evidence, question.evidence)
    if not gold:
        yield "evidence_recall", None
        return
    hit = covered_chars(question.evidence, answer.context_spans)
    shown = covered_chars(answer.context_spans, answer.context_spans)
    yield "evidence_recall", 100 * hit / gold
    yield "evidence_any_hit", 100.0 * (hit > 0)
    yield "evidence_full", 100.0 * (hit == gold)
    yield "evidence_precision", 100 * hit / shown if shown else None
