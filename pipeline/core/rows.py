"""Base classes of every table's record, the records of documents and questions, the rows that a
stage reads, their lines in a trace, and their conversion to and from Arrow tables.

Importing a record class's module registers it in `RECORDS` by its table's name. Positions count
from 0, spans are half-open, words are counted by stages/text/words.py, tokens by the engine.
"""

import dataclasses
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar, cast, get_args, get_origin

import pyarrow as pa
from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict, is_typeddict

from pipeline.core.errors import Problem, UsageError
from pipeline.core.registry import Registry
from pipeline.core.sql_files import table_sql, view_names

Float32 = Annotated[float, pa.float32()]  # half the bytes, and the precision of embedding models
RECORDS: "Registry[type[Record]]" = Registry("writes the table {!r}")
TABLE_NAME = re.compile(r"(?!all_|raw_|no_)[a-z][a-z0-9_]*(?<!_rows)")
VIEWS = (  # that DuckDB has of every warehouse
    "accounting", "answered_by", "call_bytes", "counts", "footers", "inputs", "left_out",
    "measures", "memories", "page_texts", "people", "planned", "rests_on", "results", "runs",
    "shards", "sizes", "steps", "units",
)  # fmt: skip
# Columns that are added when a shard is written, and what they mean in every table.
STAMPS = {
    "corpus": "the corpus's name",
    "step_id": "the step that made the row: its stage and 8 hex of a hash of all that shaped it",
    "unit": "the unit of work that made the row, named by a hash of what it worked on",
    "method": "the method that the row was made for; null for rows that methods share",
    "repeat": "which of the run's `repeats`, from 0",
    "memory": "the pagination that page indexes refer to; `shared` is the run's own",
    "input_sha": "hash of all inputs of the question's rows",
}
PLACE = (*STAMPS, "document_id", "question_id")  # columns that a trace's headings show already
_VECTOR = 16  # numbers; shorter lists are printed in a trace


@dataclass(frozen=True, slots=True)
class RawText:
    """A line that ends with a possibly long text, which `gistmill trace` cuts without `--full`."""

    lead: str
    text: str


F = TypeVar("F", bound=Callable[..., Any])
Line = str | RawText
Row = Mapping[str, Any]  # selected by SQL


def is_vector(value: object) -> bool:
    """True for a list of fractions too long to print."""
    if not isinstance(value, list | tuple) or len(value) < _VECTOR:
        return False
    return all(isinstance(number, float) for number in value)


def columns_line(row: Row) -> str:
    """Names and values of a row's columns on one line, without ids, SQL nulls and vectors."""
    shown = {name: value for name, value in row.items() if name not in PLACE and value is not None}
    return ", ".join(f"{name} {value}" for name, value in shown.items() if not is_vector(value))


def titled(title: str, rows: Iterable[Row], trace: Callable[[Row], Sequence[Line]]) -> list[Line]:
    """The title, then the lines of all rows, indented by two spaces."""
    lines = [line for row in rows for line in trace(row)]
    return [title, *(f"  {x}" if isinstance(x, str) else RawText(f"  {x.lead}", x.text)
                     for x in lines)]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Span:
    """Half-open span of characters of a document's text."""

    start_char: int
    end_char: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A row of a table. `key`: the columns that identify it within its step."""

    table: ClassVar[str]
    key: ClassVar[tuple[str, ...]]
    # In addition to corpus, step_id and unit: memory, the pagination of the page indexes, and
    # input_sha, the hash of all inputs of the question's rows.
    stamps: ClassVar[tuple[str, ...]] = ()
    # Whether rows hold page indexes: what reads them must read pages of the same memory.
    has_pages: ClassVar[bool] = False
    # Records that the lines of a trace include, which are not traced again.
    shows: ClassVar[tuple[type["Record"], ...]] = ()
    # Whether the HTML page (jobs/html) draws the rows by their columns, not by their trace's lines.
    drawn: ClassVar[bool] = False
    document_id: str  # of the corpus, or made of the text's hash
    problem: Problem | None = None  # why the row is not what was asked for; null: it is

    def __init_subclass__(cls) -> None:
        table = cls.__dict__.get("table")
        if table is None:
            return
        taken = dict.fromkeys(VIEWS, "every warehouse")
        for other in (record for name, record in RECORDS.items() if name != table):
            names = (other.table, *view_names(other.sql()))
            taken |= dict.fromkeys(names, f"{other.__module__}.{other.__name__}")
        what = f"{cls.__module__}: {cls.__name__} makes the table or view"
        if not TABLE_NAME.fullmatch(table):
            raise UsageError(f"{what} {table!r}: not a name that SQL can use; rename it")
        for name in (n for n in (table, *view_names(cls.sql())) if n in taken):
            raise UsageError(f"{what} {name!r}, which is that of {taken[name]}; rename it")
        RECORDS.add(table, cls)

    @classmethod
    def sql(cls) -> Mapping[str, str]:
        """The sections of the file `<table>.sql` beside its module, by name (see sql_files.py)."""
        return table_sql(cls.__module__, cls.table)

    @classmethod
    def about(cls, row: "Record", **values: Any) -> Self:
        """A row about a question, page or document: its ids and `values`. Other columns are None if
        they may be null, or else 0, "" or ()."""
        ids = ("document_id", "question_id", "page_index")
        shared = [name for name in ids if hasattr(row, name) and name in cls.__dataclass_fields__]
        return cls(**_empty_values(cls) | {id_: getattr(row, id_) for id_ in shared} | values)

    def why_unusable(self) -> str | None:
        """A reason why a stage cannot use this row; None if it can, even if its text is
        truncated."""
        return None if self.problem in (None, "truncated") else f"{self.table}: {self.problem}"

    @classmethod
    def trace(cls, row: Row) -> Sequence[Line]:
        """The lines that `gistmill trace` prints for a row, which was selected by SQL."""
        return [columns_line(row)]

    @classmethod
    def trace_all(cls, rows: Sequence[Row]) -> Sequence[Line]:
        """The lines for all rows of one question; `rows` are in the order of their key."""
        return [line for row in rows for line in cls.trace(row)]


def _cached(function: F) -> F:
    """`functools.cache` for functions of a class, which mypy takes for unhashable."""
    return cast(F, cache(function))


@_cached
def _empty_values(record: type[Record]) -> dict[str, Any]:
    """The values of columns without a default: None where they may be null, else 0, "" or ()."""
    hints = typing.get_type_hints(record)
    fields = dataclasses.fields(record)
    required = [field.name for field in fields if field.default is dataclasses.MISSING]
    return {
        name: None
        if types.NoneType in get_args(hints[name])
        else (get_origin(hints[name]) or hints[name])()
        for name in required
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRow(Record):
    """A row of a document's memory (pages, gists, embeddings ...), made once for all questions.
    `once_per_memory`: only one step of a run may write them for a memory, so that joins on memory
    and page_index find one row."""

    stamps: ClassVar[tuple[str, ...]] = ("memory",)
    has_pages: ClassVar[bool] = True
    once_per_memory: ClassVar[bool] = True
    detail: str | None = None  # more about the problem

    @classmethod
    def trace_all(cls, rows: Sequence[Row]) -> Sequence[Line]:
        """The lines for all rows of one document's memory, under a heading."""
        return titled(f"{cls.table.upper()} ({len(rows)} rows)", rows, cls.trace)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionRow(Record):
    """A row that one method made for one question."""

    stamps: ClassVar[tuple[str, ...]] = ("method", "repeat", "memory", "input_sha")
    has_pages: ClassVar[bool] = True
    question_id: str  # of the corpus, or made of the question's hash
    detail: str | None = None  # more about the problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Document(Record):
    """One text to read. Problem: bad_input (it could not be loaded; the reason is in `detail`)."""

    table: ClassVar[str] = "documents"
    key: ClassVar[tuple[str, ...]] = ("document_id",)
    title: str = ""  # as the corpus has it
    text: str = ""  # the whole text
    num_words: int = 0  # words of the text
    num_paragraphs: int = 0  # as pagination finds them
    metadata: str = "{}"  # JSON object: other fields of the corpus format
    skipped: bool = False  # a document without a text to read (no story)
    detail: str | None = None  # why it could not be loaded, or what of its text is not certain

    def why_unusable(self) -> str | None:
        if self.problem is not None:
            return self.detail or f"document: {self.problem}"
        return "document: skipped" if self.skipped else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question(Record):
    """One question about one document; `options` are empty for a free-form question."""

    table: ClassVar[str] = "questions"
    key: ClassVar[tuple[str, ...]] = ("question_id",)
    stamps: ClassVar[tuple[str, ...]] = ("input_sha",)
    question_id: str  # of the corpus, or made of the question's hash
    question: str = ""  # as it is asked
    options: tuple[str, ...] = ()  # to choose from; empty: the answer is free-form
    references: tuple[str, ...] = ()  # for a multiple-choice question the text of the right option
    answer_index: int | None = None  # the right option
    question_type: str | None = None  # as the corpus has it
    evidence: tuple[Span, ...] = ()  # gold characters of the document's text; empty: not given
    asked_at: str | None = None  # the question's date, as the corpus has it
    only_judged: bool = False  # word-overlap metrics do not apply; a judge decides
    task: str | None = None  # of a benchmark that scores each of its tasks in another way
    classes: tuple[str, ...] = ()  # the labels that a classification task chooses from
    metadata: str = "{}"  # JSON object: other fields of the corpus format
    detail: str | None = None  # why it could not be loaded, or is not certain


R = TypeVar("R", bound=Record)
Q = TypeVar("Q", bound=QuestionRow)


@dataclass(frozen=True)
class UnitRows:
    """The rows that a stage reads for one unit; `rows[Page]` are the rows of class Page. Fields
    that the stage does not name hold their defaults."""

    document: Document
    questions: tuple[Question, ...] = ()
    tables: Mapping[type[Record], tuple[Any, ...]] = dataclasses.field(default_factory=dict)

    def __getitem__(self, record: type[R]) -> tuple[R, ...]:
        """The rows of a record class. Raises KeyError for one that the stage does not read."""
        return self.tables[record]

    def of(self, record: type[Q], question: Question) -> list[Q]:
        return [row for row in self[record] if row.question_id == question.question_id]

    def made_of(self, question: Question) -> list[QuestionRow]:
        """The rows of all record classes for one question."""
        tables = (rows for record, rows in self.tables.items() if is_per_question(record))
        return [r for rows in tables for r in rows if r.question_id == question.question_id]


def is_per_question(record: type[Record]) -> bool:
    """True if rows have a question_id: the units of their step are chunks of questions."""
    return "question_id" in record.__dataclass_fields__


def utc_now() -> datetime:
    """The time in UTC, without a zone: DuckDB would convert it to the reader's zone."""
    return datetime.now(UTC).replace(tzinfo=None)


_ARROW_TYPES: dict[Any, Any] = {
    str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_(),
    datetime: pa.timestamp("us"), Literal: pa.string(),
}  # fmt: skip
_LAST = ("skipped", "problem", "detail")  # the last columns of every table that has them


def arrow_type(hint: Any) -> Any:
    """The Arrow type for a column's type hint. Raises KeyError if there is none."""
    origin, args = get_origin(hint), get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return arrow_type(next(a for a in args if a is not types.NoneType))
    if origin is Annotated:
        return args[1]
    if origin is tuple:
        return pa.list_(arrow_type(args[0]))
    if dataclasses.is_dataclass(hint) or is_typeddict(hint):
        fields = typing.get_type_hints(hint).items()
        return pa.struct([(name, arrow_type(inner)) for name, inner in fields])
    return _ARROW_TYPES[origin or hint]


def _column_hints(record: type[Record]) -> dict[str, Any]:
    hints = typing.get_type_hints(record, include_extras=True)
    names = [field.name for field in dataclasses.fields(record)]
    names.sort(key=lambda name: _LAST.index(name) if name in _LAST else -1)
    return {name: hints[name] for name in names}


@_cached
def schema(record: type[Record]) -> Any:
    """The Arrow schema of a record's table: its stamps, then its fields."""
    stamps = [n for n in STAMPS if n in ("corpus", "step_id", "unit", *record.stamps)]
    return pa.schema(
        [(name, pa.int64() if name == "repeat" else pa.string()) for name in stamps]
        + [(name, arrow_type(hint)) for name, hint in _column_hints(record).items()]
    )


def empty_table(columns: Any) -> Any:
    """A table without rows. (Arrow's own `empty_table` imports pandas.)"""
    return pa.Table.from_batches([], columns)


def to_arrow(record: type[Record], rows: Sequence[Record], stamps: Iterable[Row]) -> Any:
    """An Arrow table of `rows`; `stamps`: a mapping per row, of which the table's columns count."""
    dicts = [{**s, **dataclasses.asdict(row)} for row, s in zip(rows, stamps, strict=True)]
    # In one call: column by column takes one and a half times as long.
    return pa.Table.from_struct_array(pa.array(dicts, pa.struct([*schema(record)])))


def from_arrow(record: type[R], rows: Any) -> tuple[R, ...]:
    """The records of an Arrow table. A column that an earlier version lacked gets its default."""
    names = [field.name for field in dataclasses.fields(record) if field.name in rows.column_names]
    return tuple(_list_of(record).validate_python(rows.select(names).to_pylist()))


def wrong_value(record: type[Record], rows: Sequence[Record]) -> str | None:
    """Describe the first value that its column cannot hold; None if there is none."""
    names = [field.name for field in dataclasses.fields(record)]
    values = [{name: getattr(row, name) for name in names} for row in rows]
    try:
        _columns_of(record).validate_python(values, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        index, *column = first["loc"]
        shown = repr(first["input"])[:80]
        return f"row {index}: {'.'.join(map(str, column))}: {first['msg']}, not {shown}"
    for index, row in enumerate(values):
        for name, value in row.items():
            if isinstance(value, int) and not -(2**63) <= value < 2**63:
                return f"row {index}: {name}: {value} has more than 64 bits"
            try:  # a hundred times as fast as searching for surrogates
                _ = isinstance(value, str) and value.encode()
            except UnicodeEncodeError:
                return f"row {index}: {name}: a surrogate, which is no character"
    return None


@_cached
def _list_of(row: type) -> TypeAdapter[Any]:
    rows: Any = types.GenericAlias(list, row)
    return TypeAdapter(rows)


@_cached
def _columns_of(record: type[Record]) -> TypeAdapter[Any]:
    typed: Any = TypedDict
    return _list_of(typed(record.__name__, _column_hints(record)))
