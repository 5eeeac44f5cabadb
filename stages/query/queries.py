"""The texts that are searched for on behalf of a question, and the base of the stages that make
them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from pydantic import PositiveInt

from pipeline.errors import Problem
from pipeline.prompts import Asked
from pipeline.rows import Question, QuestionRow, Record, UnitRows
from pipeline.stage import Column, Stage, refuse_gaps
from pipeline.trace_lines import Line
from stages.text.words import num_words

Kind = Literal[
    "question", "span", "surrogate", "draft", "point", "hypothetical", "sub_question", "time_range"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Query(QuestionRow):
    """A text that is searched for on behalf of a question; `kind`: what it is (see `Kind`).

    `dropped`, why it is not searched for: short (fewer words than the setting), duplicate (of an
    earlier query), over_maximum. `part_index`: the part of the memory that it comes from.
    """

    table: ClassVar[str] = "queries"
    key: ClassVar[tuple[str, ...]] = ("question_id", "query_index")
    drawn: ClassVar[bool] = True
    has_pages: ClassVar[bool] = False
    measures: ClassVar[str | None] = """
        select method, repeat, document_id, question_id, null::varchar as rater,
          max(problem) as problem, 'queries' as measure,
          count(*) filter (text is not null and dropped is null and kind <> 'time_range')::double
            as value
        from queries group by all"""
    query_index: int  # of the question's queries, from 0
    # what it is: question, span, surrogate, draft, point, hypothetical, sub_question or time_range.
    kind: str
    text: str | None  # null: no reply, or none that can be read
    dropped: str | None = None  # why it is not searched for: short, duplicate, over_maximum
    part_index: int | None = None  # the part of the memory that it comes from
    start_date: str | None = None  # YYYY/MM/DD; of a time range
    end_date: str | None = None  # YYYY/MM/DD; of a time range

    def lack(self) -> str | None:
        """Only where there was no reply: after one that cannot be read other queries remain."""
        is_reply = self.problem in (None, "truncated", "unparseable")
        return None if is_reply else f"queries: {self.problem}"

    @classmethod
    def trace(cls, row: Mapping[str, Any]) -> Sequence[Line]:
        facts = [row["kind"], row["dropped"], row["problem"]]
        return [f"query {row['query_index']} ({', '.join(filter(None, facts))}): "
                f"{row['text'] or '-'}"]  # fmt: skip


class MakeQueries(Stage):
    """Base class: writes a row per query, numbered from 0. Problems of rows: unparseable, truncated
    (there is no such query); context_overflow, timeout, engine_failed.
    """

    name: ClassVar[str] = "queries"
    writes: ClassVar[type[Record]] = Query

    def numbered(self, found: Sequence[Query]) -> list[Query]:
        """The queries of a question with their numbers."""
        return [replace(row, query_index=index) for index, row in enumerate(found)]

    def failed(self, rows: UnitRows, problem: Problem, detail: str | None) -> list[Query]:
        return [
            replace(query(question, "question", None), problem=problem, detail=detail)
            for question in rows.questions
        ]

    def check(self, rows: UnitRows, made: Sequence[Record]) -> None:
        """Raise AccountingError unless every question has queries, numbered from 0."""
        refuse_gaps(rows, made, "query_index")

    def columns(self) -> Mapping[Literal["any", "free", "choice"], tuple[Column, ...]]:
        return {"any": (Column("queries", "queries", 15, has_interval=False),)}


class FilterQueries(MakeQueries):
    """Base class. Of what a model writes are searched for lines of `min_query_words` words or more
    (in scripts without spaces characters count as words), each once, and at most `max_queries` of a
    reply.
    """

    min_query_words: PositiveInt
    max_queries: PositiveInt

    def numbered(self, found: Sequence[Query]) -> list[Query]:
        """The queries with their numbers, and why some are not searched for."""
        made: list[Query] = []
        seen: set[str] = set()
        of_replies: Counter[tuple[str, int | None]] = Counter()
        for row in found:
            row = replace(row, dropped=self._refusal(row, seen, of_replies))
            if row.dropped is None and row.text is not None:
                seen.add(_same(row.text))
                of_replies[row.kind, row.part_index] += 1
            made.append(row)
        return super().numbered(made)

    def _refusal(
        self, row: Query, seen: set[str], of_replies: Counter[tuple[str, int | None]]
    ) -> str | None:
        if row.text is None or row.kind == "question":
            return None
        if num_words(row.text) < self.min_query_words:
            return "short"
        if _same(row.text) in seen:
            return "duplicate"
        num = of_replies[row.kind, row.part_index]
        return "over_maximum" if num >= self.max_queries else None


def query(question: Question, kind: Kind, text: str | None) -> Query:
    """A query that has no number yet."""
    return Query(
        document_id=question.document_id,
        question_id=question.question_id,
        query_index=0,
        kind=kind,
        text=text,
    )


def queries_of(
    question: Question, kind: Kind, asked: Asked[str] | Asked[tuple[str, ...]], part: int | None
) -> list[Query]:
    """The queries that a reply holds, a line each; one without a text where it cannot be read."""
    row = replace(query(question, kind, None), part_index=part)
    if asked.value is None:
        return [replace(row, problem=asked.problem)]
    texts = [asked.value] if isinstance(asked.value, str) else asked.value
    return [replace(row, text=text) for text in texts]


def searched(rows: UnitRows, question: Question) -> list[Query]:
    """The queries of a question that are searched for, with their texts."""
    return [row for row in rows.of(Query, question) if is_searched(row)]


def is_searched(row: Query) -> bool:
    return row.text is not None and row.dropped is None and row.kind != "time_range"


def _same(text: str) -> str:
    return " ".join(text.casefold().split())
