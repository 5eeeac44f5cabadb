"""Arrow schemas derived from record classes, and conversion of rows to and from Arrow tables."""

import dataclasses
import types
import typing
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cache
from typing import Annotated, Any, TypeVar

import pyarrow as pa
from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict, is_typeddict

from pipeline.core.rows import Record

R = TypeVar("R", bound=Record)
_STAMPS: dict[str, Any] = {
    "corpus": pa.string(), "step_id": pa.string(), "unit": pa.string(), "method": pa.string(),
    "repeat": pa.int64(), "memory": pa.string(), "input_sha": pa.string(),
}  # fmt: skip
_ARROW_TYPES: dict[Any, Any] = {
    str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_(),
    datetime: pa.timestamp("us"),
}  # fmt: skip
_SHOWN = 80  # characters of a wrong value
_LAST = ("skipped", "problem", "detail")  # the last columns of every table that has them


def schema(record: type[Record]) -> Any:
    """The Arrow schema of a record's table: its stamps, then its fields."""
    return _schema(typing.cast(Any, record))


def empty_table(columns: Any) -> Any:
    """A table without rows. (Arrow's own `empty_table` imports pandas.)"""
    return pa.Table.from_batches([], columns)


@cache
def _schema(record: Any) -> Any:
    hints = typing.get_type_hints(record, include_extras=True)
    names = ["corpus", "step_id", "unit", *(name for name in _STAMPS if name in record.stamps)]
    stamps = [pa.field(name, _STAMPS[name]) for name in names]
    return pa.schema(stamps + [pa.field(n, arrow_type(hints[n])) for n in _own_columns(record)])


def _own_columns(record: type[Record]) -> list[str]:
    names = [field.name for field in dataclasses.fields(record)]
    return sorted(names, key=lambda name: _LAST.index(name) if name in _LAST else -1)


def arrow_type(hint: Any) -> Any:
    """The Arrow type for a column's type hint. Raises KeyError if there is none."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return arrow_type(next(a for a in args if a is not type(None)))
    if origin is typing.Literal:
        return pa.string()
    if origin is Annotated:
        return args[1]
    if origin is tuple:
        return pa.list_(arrow_type(args[0]))
    if dataclasses.is_dataclass(hint) or is_typeddict(hint):
        inner = typing.get_type_hints(hint)
        return pa.struct([(name, arrow_type(inner[name])) for name in inner])
    return _ARROW_TYPES[hint]


def to_arrow(record: type[Record], rows: Sequence[Record], stamps: Iterable[dict[str, Any]]) -> Any:
    """Build an Arrow table from `rows`. `stamps` has one dictionary per row; keys that are not
    columns of the table are ignored."""
    dicts = [{**s, **dataclasses.asdict(row)} for row, s in zip(rows, stamps, strict=True)]
    # In one call: converting column by column takes one and a half times as long.
    return pa.Table.from_struct_array(pa.array(dicts, pa.struct([*schema(record)])))


def from_arrow(record: type[R], rows: Any) -> tuple[R, ...]:
    """The records of an Arrow table in its order, without stamps. A missing column, as in files of
    earlier versions, gets its default."""
    names = [field.name for field in dataclasses.fields(record) if field.name in rows.column_names]
    return tuple(_adapter(typing.cast(Any, record)).validate_python(rows.select(names).to_pylist()))


def wrong_value(record: type[Record], rows: Sequence[Record]) -> str | None:
    """Describe the first value that its column cannot hold; None if there is none."""
    names = [field.name for field in dataclasses.fields(record)]
    values = [{name: getattr(row, name) for name in names} for row in rows]
    try:
        _columns(typing.cast(Any, record)).validate_python(values, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place, *column = first["loc"]
        shown = repr(first["input"])[:_SHOWN]
        return f"row {place}: {'.'.join(map(str, column))}: {first['msg']}, not {shown}"
    for place, row in enumerate(values):
        for name, value in row.items():
            if isinstance(value, int) and not -(2**63) <= value < 2**63:
                return f"row {place}: {name}: {value} has more than 64 bits"
            if isinstance(value, str) and not _is_unicode(value):
                return f"row {place}: {name}: a surrogate, which is no character"
    return None


def _is_unicode(text: str) -> bool:
    try:
        text.encode()  # a hundred times as fast as searching for surrogates
    except UnicodeEncodeError:
        return False
    return True


@cache
def _columns(record: Any) -> TypeAdapter[Any]:
    hints = typing.get_type_hints(record, include_extras=True)
    typed: Any = TypedDict
    return _adapter(typed(record.__name__, {name: hints[name] for name in _own_columns(record)}))


@cache
def _adapter(row: Any) -> TypeAdapter[Any]:
    rows: Any = types.GenericAlias(list, row)
    return TypeAdapter(rows)
