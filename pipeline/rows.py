"""Rows: the base classes of every table's record, and the Arrow schemas derived from them.

A record class stands beside the stage that writes it and is found by its table's name in `RECORDS`
once its module is imported. Positions count from 0, spans are half-open, words are those of
stages/text/words.py, tokens the engine's. The stamps, columns that say which step and unit made a
row, are added when the shard is written.
"""

import dataclasses
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Annotated, Any, ClassVar, TypeVar

import pyarrow as pa
from pydantic import TypeAdapter

from pipeline.errors import Problem
from pipeline.names import register
from pipeline.trace_lines import Line, columns_told, titled

Float32 = Annotated[float, pa.float32()]  # half the bytes, and all that embedding models give
RECORDS: "dict[str, type[Record]]" = {}


@dataclass(frozen=True, slots=True)
class Span:
    """Characters `start_char` up to, not including, `end_char` of a document's text."""

    start_char: int
    end_char: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A row. `table` names its table, `key` the columns that tell it from others of its step."""

    table: ClassVar[str]
    key: ClassVar[tuple[str, ...]]
    stamps: ClassVar[tuple[str, ...]] = ()  # beside corpus, step_id and unit, which all rows have
    # `create view` statements of DuckDB that rest on the table; {prefix} is empty or `all_`, whose
    # rows have a column `run` before all others: {run} is empty or `run, `.
    views: ClassVar[tuple[str, ...]] = ()
    # Selects whose rows join the views that commands read (see store/contracts.py). Each joins rows
    # of a memory by (memory, document_id, page_index).
    # measures, which reports take their means of: method, repeat, document_id, question_id, rater,
    # problem, measure, value.
    measures: ClassVar[str | None] = None
    # Whether page indexes are in it: what reads it must read the pages of the same memory.
    has_pages: ClassVar[bool] = False
    # counts, the rows of which reports add up: method, document_id, question_id, rater, counted
    # (n, answered, unscored), value.
    counts: ClassVar[str | None] = None
    # sizes, the distributions of `report --corpus`: memory (or null), measure, rows_of (what it is
    # measured of, in the plural), place (measures stand in the order of their places), value.
    sizes: ClassVar[str | None] = None
    # memories: memory, and columns of its own, one row per memory.
    memories: ClassVar[str | None] = None
    # What `gistmill trace` takes the rows from, where it shows more or less than the table has;
    # and the records whose rows its lines show already.
    traced: ClassVar[str | None] = None
    shows: ClassVar[tuple[type["Record"], ...]] = ()
    document_id: str
    problem: Problem | None = None

    def __init_subclass__(cls) -> None:
        table = cls.__dict__.get("table")
        if table is None:
            return
        register(RECORDS, table, cls, f"writes the table {table!r}")

    def lack(self) -> str | None:
        """Why a stage that reads this row cannot use it; null where it can.

        A truncated row keeps its text and is used.
        """
        return None if self.problem in (None, "truncated") else f"{self.table}: {self.problem}"

    @classmethod
    def trace(cls, row: Mapping[str, Any]) -> Sequence[Line]:
        """The lines that `gistmill trace` prints of a row, given as SQL gives it."""
        return [columns_told(row)]

    @classmethod
    def trace_all(cls, rows: Sequence[Mapping[str, Any]]) -> Sequence[Line]:
        """The lines of all rows that one question has, in the order of their key."""
        return [line for row in rows for line in cls.trace(row)]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRow(Record):
    """A row of a document's memory (pages, gists, embeddings ...), read by all its questions.

    The stamp `memory` names the pagination it rests on.
    """

    stamps: ClassVar[tuple[str, ...]] = ("memory",)
    has_pages: ClassVar[bool] = True
    detail: str | None = None

    @classmethod
    def trace_all(cls, rows: Sequence[Mapping[str, Any]]) -> Sequence[Line]:
        """The lines of all rows that one document's memory has, under a heading."""
        return titled(f"{cls.table.upper()} ({len(rows)} rows)", rows, cls.trace)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionRow(Record):
    """A row that one method made of one question.

    The stamp `memory` names the pagination that its page indexes belong to, `input_sha` hashes all
    that the question's rows are made from.
    """

    stamps: ClassVar[tuple[str, ...]] = ("method", "repeat", "memory", "input_sha")
    has_pages: ClassVar[bool] = True
    question_id: str
    detail: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Document(Record):
    """One text to read. `problem` bad_input: it could not be loaded, `detail` says why."""

    table: ClassVar[str] = "documents"
    key: ClassVar[tuple[str, ...]] = ("document_id",)
    sizes: ClassVar[str | None] = """
        select null::varchar as memory, 'words per document' as measure, 'documents' as rows_of,
          10 as place, num_words::double as value
        from documents where problem is null and not skipped"""
    title: str = ""
    text: str = ""
    num_words: int = 0
    num_paragraphs: int = 0
    metadata: str = "{}"  # JSON object, whatever else the format holds
    skipped: bool = False  # a document without a text to read (no story)
    detail: str | None = None

    def lack(self) -> str | None:
        if self.problem is not None:
            return self.detail or f"document: {self.problem}"
        return "document: skipped" if self.skipped else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question(Record):
    """One question about one document; `options` are empty for a free-form question."""

    table: ClassVar[str] = "questions"
    key: ClassVar[tuple[str, ...]] = ("question_id",)
    stamps: ClassVar[tuple[str, ...]] = ("input_sha",)
    question_id: str
    question: str = ""
    options: tuple[str, ...] = ()
    references: tuple[str, ...] = ()  # for a multiple-choice question the text of the right option
    answer_index: int | None = None  # the right option
    question_type: str | None = None
    evidence: tuple[Span, ...] = ()  # gold characters of the document's text; empty: not given
    asked_at: str | None = None
    only_judged: bool = False  # no overlap of words says whether an answer is right
    metadata: str = "{}"
    detail: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Record):
    """One model call. `request_sha` names rendered messages, model, sampling, seed and attempt."""

    table: ClassVar[str] = "calls"
    key: ClassVar[tuple[str, ...]] = ("unit", "call_index")
    stamps: ClassVar[tuple[str, ...]] = ("method", "repeat", "memory", "input_sha")
    call_index: int  # position within the unit, in the order of the ids below
    stage: str
    question_id: str | None
    page_index: int | None
    turn: int | None
    reference_index: int | None
    prompt: str
    request_sha: str
    engine: str
    attempt: int
    prompt_tokens: int
    cached_tokens: int
    reply_tokens: int
    finish_reason: str
    seconds: float
    reply: str  # without any thinking
    thinking: str | None = None
    is_shared: bool = False  # made for another page that sends the same request: no cost here
    started_at: datetime | None = None  # UTC; when it was sent to the engine
    worker: str | None = None  # host and process


R = TypeVar("R", bound=Record)
Q = TypeVar("Q", bound=QuestionRow)
_STAMPS: dict[str, Any] = {
    "corpus": pa.string(), "step_id": pa.string(), "unit": pa.string(), "method": pa.string(),
    "repeat": pa.int64(), "memory": pa.string(), "input_sha": pa.string(),
}  # fmt: skip
_ARROW_TYPES: dict[Any, Any] = {
    str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_(),
    datetime: pa.timestamp("us"),
}  # fmt: skip
_LAST = ("skipped", "problem", "detail")  # columns, in every table that has them


@dataclass(frozen=True)
class UnitRows:
    """The rows that a stage reads for one unit: `rows[Page]` are those of a record class.

    `questions` are the unit's; of a memory stage's unit there are none. Fields of document and
    questions that the stage does not name are at their defaults.
    """

    document: Document
    questions: tuple[Question, ...] = ()
    tables: Mapping[type[Record], tuple[Any, ...]] = dataclasses.field(default_factory=dict)

    def __getitem__(self, record: type[R]) -> tuple[R, ...]:
        """Raises KeyError for a record class that the stage does not read."""
        return self.tables[record]

    def of(self, record: type[Q], question: Question) -> list[Q]:
        """The rows of one question, in their order."""
        return [row for row in self[record] if row.question_id == question.question_id]

    def made_of(self, question: Question) -> list[QuestionRow]:
        """All rows of one question, of whatever table."""
        found = [row for rows in self.tables.values() for row in rows]
        return [row for row in found if getattr(row, "question_id", None) == question.question_id]


def is_per_question(record: type[Record]) -> bool:
    """Whether a unit of what writes it is a chunk of a document's questions, not the document."""
    return "question_id" in record.__dataclass_fields__


def schema(record: type[Record]) -> Any:
    """The pinned Arrow schema of a record's table: its stamps, then its fields."""
    return _schema(typing.cast(Any, record))


@cache
def _schema(record: Any) -> Any:
    hints = typing.get_type_hints(record, include_extras=True)
    names = ["corpus", "step_id", "unit", *(name for name in _STAMPS if name in record.stamps)]
    stamps = [pa.field(name, _STAMPS[name]) for name in names]
    return pa.schema(stamps + [pa.field(n, _arrow_type(hints[n])) for n in _own_columns(record)])


def _own_columns(record: type[Record]) -> list[str]:
    names = [field.name for field in dataclasses.fields(record)]
    return sorted(names, key=lambda name: _LAST.index(name) if name in _LAST else -1)


def _arrow_type(hint: Any) -> Any:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _arrow_type(next(a for a in args if a is not type(None)))
    if origin is typing.Literal:
        return pa.string()
    if origin is Annotated:
        return args[1]
    if origin is tuple:
        return pa.list_(_arrow_type(args[0]))
    if dataclasses.is_dataclass(hint):
        inner = typing.get_type_hints(hint)
        return pa.struct([(f.name, _arrow_type(inner[f.name])) for f in dataclasses.fields(hint)])
    return _ARROW_TYPES[hint]


def utc_now() -> datetime:
    """Now as the columns have it: UTC, without a zone, which DuckDB would show in the reader's."""
    return datetime.now(UTC).replace(tzinfo=None)


def to_arrow(record: type[Record], rows: Sequence[Record], stamps: Iterable[dict[str, Any]]) -> Any:
    """The Arrow table of `rows`, each with its own stamps, those that its table has."""
    dicts = [{**s, **dataclasses.asdict(row)} for row, s in zip(rows, stamps, strict=True)]
    return pa.Table.from_pylist(dicts, schema=schema(record))


def from_arrow(record: type[R], rows: Any) -> tuple[R, ...]:
    """The records of an Arrow table, in its order; the stamps are left behind. A column that an
    earlier version did not write is at its default."""
    names = [field.name for field in dataclasses.fields(record) if field.name in rows.column_names]
    return tuple(_adapter(typing.cast(Any, record)).validate_python(rows.select(names).to_pylist()))


@cache
def _adapter(record: Any) -> TypeAdapter[Any]:
    rows: Any = types.GenericAlias(list, record)
    return TypeAdapter(rows)
