"""Every row comes back from Parquet as it went in (docs/schema.md has the columns of tables); and
the SQL in files beside record classes: what is filled in, and mistakes in one line."""

import dataclasses
import struct
import types
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import pyarrow.parquet as pq
import pytest
from typing_extensions import is_typeddict

from pipeline.core.errors import UsageError
from pipeline.core.rows import RECORDS, STAMPS, Document, Record, from_arrow, schema, to_arrow
from pipeline.core.sql_files import filled as filled_sql
from pipeline.core.sql_files import sql_sections
from stages.builtin import load_builtin
from stages.tables.pages import Embedding

load_builtin()
DOCUMENT = Document(document_id="d")
OURS = ("pipeline.", "stages.")
TABLES = sorted(table for table, record in RECORDS.items() if record.__module__.startswith(OURS))
VALUES: dict[Any, Any] = {
    str: "two \x00 ünd 中", int: 2**53 + 1, float: -0.75, bool: True,
    datetime: datetime(2026, 11, 22, 3, 14, 15, 926535),
}  # fmt: skip


def value_of(hint: Any) -> Any:
    """A value of a type that is not its default."""
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return value_of(next(inner for inner in args if inner is not types.NoneType))
    if origin is Literal:
        return args[0]
    if origin is Annotated:
        return value_of(args[0])
    if origin is tuple:
        return (value_of(args[0]),) * 2
    if is_typeddict(hint):
        return {name: value_of(inner) for name, inner in get_type_hints(hint).items()}
    return filled(hint) if dataclasses.is_dataclass(hint) else VALUES[hint]


def filled(record: Any) -> Any:
    """A row in which every column has a value."""
    hints = get_type_hints(record, include_extras=True)
    fields = dataclasses.fields(record)
    return record(**{field.name: value_of(hints[field.name]) for field in fields})


def there_and_back(table: str, rows: list[Record], folder: Path) -> tuple[Record, ...]:
    file = folder / f"{table}.parquet"
    pq.write_table(to_arrow(RECORDS[table], rows, [dict.fromkeys(STAMPS)] * len(rows)), file)
    assert pq.read_schema(file).equals(schema(RECORDS[table]))
    return from_arrow(RECORDS[table], pq.read_table(file))


@pytest.mark.parametrize("table", TABLES)
def test_every_record_comes_back(table: str, tmp_path: Path) -> None:
    """Lists are null or empty: `used` is null where the look-up failed, empty where it is none."""
    full, bare = filled(RECORDS[table]), RECORDS[table].about(DOCUMENT)
    columns = {field.name: getattr(full, field.name) for field in dataclasses.fields(full)}
    lists = [name for name, value in columns.items() if isinstance(value, tuple)]
    empty = dataclasses.replace(full, **dict.fromkeys(lists, ()))
    for rows in ([full, bare, empty], [bare], []):  # a column of nulls keeps its type
        assert there_and_back(table, rows, tmp_path) == tuple(rows)


def test_embeddings_are_kept_in_single_precision(tmp_path: Path) -> None:
    row = Embedding.about(DOCUMENT, embedding=(0.1,))
    (read,) = there_and_back("embeddings", [row], tmp_path)
    (number,) = struct.unpack("<f", struct.pack("<f", 0.1))
    assert number != 0.1
    assert read == dataclasses.replace(row, embedding=(number,))


def test_fields_of_sql_are_filled_once() -> None:
    """A value that looks like a field, such as of a user's condition, stays as it is."""
    sql = "select {'a': {value}}, {other} from {source}"
    expected = "select {'a': {source}}, {other} from t"
    assert filled_sql(sql, value="{source}", source="t") == expected


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"select 1;\n-- name: a\nselect 2;\n", "SQL before the first section"),
        (b"-- name: a\nselect 1;\n-- name: a\nselect 2\n", "section 'a': twice"),
        (b"-- name: a\nselect '\xe4'\n", "not UTF-8 (invalid continuation byte)"),
    ],
)
def test_mistakes_name_the_sql_file_and_its_section(
    tmp_path: Path, content: bytes, told: str
) -> None:
    file = tmp_path / "rows.sql"
    file.write_bytes(content)
    with pytest.raises(UsageError) as refused:
        sql_sections(file)
    assert str(refused.value).startswith(f"{file}: {told}")
