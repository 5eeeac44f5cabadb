"""Base classes of the stages that make queries, the texts that are searched for on behalf of a
question."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Literal

from pydantic import PositiveInt

from pipeline.core.prompts import Asked
from pipeline.core.rows import Question, Record, UnitRows
from pipeline.work.stage import Column, Columns, Stage
from stages.tables.lookups import Query
from stages.text.words import num_words, plain

Kind = Literal[
    "question", "span", "surrogate", "draft", "point", "hypothetical", "sub_question", "time_range"
]
_QUERIES = Column(
    "queries", "queries", 15, has_interval=False,
    about="texts that pages are searched by, of a question",
)  # fmt: skip


class MakeQueries(Stage):
    """Base class: writes a row per query, numbered from 0. Problems of rows: unparseable, truncated
    (there is no such query); context_overflow, timeout, refused, engine_failed.
    """

    name = "queries"
    writes = Query
    report_columns: ClassVar[Columns] = {"any": (_QUERIES,)}

    def numbered(self, found: Sequence[Query]) -> list[Query]:
        """The queries of a question with their numbers."""
        return [replace(row, query_index=index) for index, row in enumerate(found)]

    def empty(self, rows: UnitRows, about: Record) -> Query:
        return Query.about(about, kind="question")


class FilterQueries(MakeQueries):
    """Base class. Of what a model writes are searched for lines of `min_query_words` words or more
    (in scripts without spaces characters count as words; a draft may be shorter, as in the authors'
    code), each once, and at most `max_queries` of a reply.
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
                seen.add(plain(row.text))
                of_replies[row.kind, row.part_index] += 1
            made.append(row)
        return super().numbered(made)

    def _refusal(
        self, row: Query, seen: set[str], of_replies: Counter[tuple[str, int | None]]
    ) -> str | None:
        if row.text is None or row.kind == "question":
            return None
        if row.kind != "draft" and num_words(row.text) < self.min_query_words:
            return "short"
        if plain(row.text) in seen:
            return "duplicate"
        num = of_replies[row.kind, row.part_index]
        return "over_maximum" if num >= self.max_queries else None


def query(question: Question, kind: Kind, text: str | None) -> Query:
    """A query that has no number yet."""
    return Query.about(question, kind=kind, text=text)


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
