"""One frozen record per table, and the Arrow schema derived from it.

Positions count from 0, spans are half-open. Words are whitespace-separated, tokens the engine's.
A row whose value (`text`, `gist`, `used`, `answer`) is null cannot be used by what follows it.
What a row's step and unit are (its stamps) is added when the shard is written.
"""

import dataclasses
import types
import typing
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, ClassVar, TypeVar

import pyarrow as pa
from pydantic import TypeAdapter

from pipeline.errors import Problem

Float32 = Annotated[float, pa.float32()]  # half the bytes, and all that embedding models give


@dataclass(frozen=True, slots=True)
class Span:
    """Characters `start_char` up to, not including, `end_char` of a document's text."""

    start_char: int
    end_char: int


@dataclass(frozen=True, slots=True)
class Dropped:
    """A page that was asked for and not read, and why."""

    page_index: int
    reason: str  # duplicate, out_of_range, over_maximum, no_room


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A row. `table` names its table, `key` what makes it unique within a step and repeat."""

    table: ClassVar[str]
    key: ClassVar[tuple[str, ...]]
    document_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Document(Record):
    """One text to read. `problem` bad_input: it could not be loaded, `detail` says why."""

    table: ClassVar[str] = "documents"
    key: ClassVar[tuple[str, ...]] = ("document_id",)
    title: str = ""
    text: str = ""
    num_words: int = 0
    num_paragraphs: int = 0
    metadata: str = "{}"  # JSON object, whatever else the format holds
    skipped: bool = False  # a document without a text to read (no story)
    problem: Problem | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question(Record):
    """One question about one document; `options` are empty for a free-form question."""

    table: ClassVar[str] = "questions"
    key: ClassVar[tuple[str, ...]] = ("question_id",)
    question_id: str
    question: str = ""
    options: tuple[str, ...] = ()
    references: tuple[str, ...] = ()  # for a multiple-choice question the text of the right option
    answer_index: int | None = None  # the right option
    question_type: str | None = None
    evidence: tuple[Span, ...] = ()  # gold characters of the document's text; empty: not given
    asked_at: str | None = None
    metadata: str = "{}"
    problem: Problem | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Record):
    """One page. Pages tile the document: joined in order, their texts are its text."""

    table: ClassVar[str] = "pages"
    key: ClassVar[tuple[str, ...]] = ("document_id", "page_index")
    page_index: int
    start_char: int
    end_char: int
    text: str | None
    num_words: int
    chosen_by: str | None  # model, rule, end, fallback
    problem: Problem | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gist(Record):
    """The shortened text of one page. A truncated gist keeps its text."""

    table: ClassVar[str] = "gists"
    key: ClassVar[tuple[str, ...]] = ("document_id", "page_index")
    page_index: int
    gist: str | None
    num_words: int
    problem: Problem | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedding(Record):
    """The vector of one chunk of a page's text or of its gist; its length is 1.

    The span is in the text that was embedded, not in the document's.
    """

    table: ClassVar[str] = "embeddings"
    key: ClassVar[tuple[str, ...]] = ("document_id", "page_index", "chunk_index")
    page_index: int
    chunk_index: int
    start_char: int
    end_char: int
    embedding: tuple[Float32, ...] | None
    problem: Problem | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup(Record):
    """One look-up turn of one question. A method that looks nothing up writes turn 0 with none."""

    table: ClassVar[str] = "lookups"
    key: ClassVar[tuple[str, ...]] = ("question_id", "turn")
    question_id: str
    turn: int
    requested: tuple[int, ...] = ()  # page indexes, in the order asked for, legal or not
    used: tuple[int, ...] | None = ()  # page indexes in order of importance
    dropped: tuple[Dropped, ...] = ()
    skipped: bool = False  # the method does not apply (oracle_pages without gold evidence)
    problem: Problem | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(Record):
    """A method's answer to one question, and what its final context held."""

    table: ClassVar[str] = "answers"
    key: ClassVar[tuple[str, ...]] = ("question_id",)
    question_id: str
    reader: str  # the engine that answered
    answer: str | None
    answer_index: int | None = None  # the option chosen
    page_indexes: tuple[int, ...] = ()  # raw pages in the final context, document order
    context_spans: tuple[Span, ...] = ()  # raw text in the final context
    num_lookups: int = 0  # distinct pages used
    num_context_words: int | None = None  # words of gists and raw text in the final context
    num_document_words: int = 0
    compression_rate: float | None = None  # 100 * (1 - context words / document words)
    num_answer_words: int = 0
    skipped: bool = False
    problem: Problem | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rating(Record):
    """One answer rated against one reference by the strict and the permissive rater prompt."""

    table: ClassVar[str] = "ratings"
    key: ClassVar[tuple[str, ...]] = ("question_id", "reference_index")
    question_id: str
    rater: str  # the engine and 4 hex of its identity
    rater_is_model: bool
    reference_index: int
    strict: str | None = None  # yes, no
    permissive: str | None = None  # yes, partially, no
    skipped: bool = False  # multiple choice or no reference: nothing to rate
    problem: Problem | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Score(Record):
    """One metric of one answer, 0-100. An answer with a problem scores 0 and says so."""

    table: ClassVar[str] = "scores"
    key: ClassVar[tuple[str, ...]] = ("question_id", "metric")
    question_id: str
    metric: str
    value: float | None
    skipped: bool = False
    problem: Problem | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Record):
    """One model call. `request_sha` names rendered messages, model, sampling, seed and attempt."""

    table: ClassVar[str] = "calls"
    key: ClassVar[tuple[str, ...]] = ("unit", "call_index")
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
    problem: Problem | None = None


R = TypeVar("R", bound=Record)
_STAMPS: dict[str, Any] = {"corpus": pa.string(), "step_id": pa.string(), "unit": pa.string()}
_METHOD_STAMPS: dict[str, Any] = {"method": pa.string(), "repeat": pa.int64()}
_INPUT_STAMP: dict[str, Any] = {"input_sha": pa.string()}  # all a question's rows are made from
TABLES: dict[str, type[Record]] = {
    record.table: record
    for record in (
        Document, Question, Page, Gist, Embedding, Lookup, Answer, Rating, Score, Call,
    )
}  # fmt: skip


@cache
def schema(table: str) -> Any:
    """The pinned Arrow schema of a table: the stamps, then its record's fields.

    All rows have corpus, step_id and unit; those of methods method and repeat (null and 0 for the
    calls of the memory), those of questions the hash of all they are made from.
    """
    hints = typing.get_type_hints(TABLES[table], include_extras=True)
    has_method = table in ("lookups", "answers", "ratings", "scores", "calls")
    names = {**_STAMPS, **(_METHOD_STAMPS if has_method else {})}
    names |= _INPUT_STAMP if "question_id" in hints else {}
    stamps = [pa.field(name, kind) for name, kind in names.items()]
    own = [pa.field(f.name, _arrow_type(hints[f.name])) for f in dataclasses.fields(TABLES[table])]
    return pa.schema(stamps + own)


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
    return {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}[hint]


def to_arrow(table: str, rows: Sequence[Record], stamps: Iterable[dict[str, Any]]) -> Any:
    """The Arrow table of `rows`, each with its own stamps, those that its table has."""
    dicts = [{**s, **dataclasses.asdict(row)} for row, s in zip(rows, stamps, strict=True)]
    return pa.Table.from_pylist(dicts, schema=schema(table))


def from_arrow(record: type[R], rows: Any) -> tuple[R, ...]:
    """The records of an Arrow table, in its order; the stamps are left behind."""
    names = [f.name for f in dataclasses.fields(record)]
    return tuple(_adapter(record.table).validate_python(rows.select(names).to_pylist()))


@cache
def _adapter(table: str) -> TypeAdapter[Any]:
    rows: Any = types.GenericAlias(list, TABLES[table])
    return TypeAdapter(rows)
