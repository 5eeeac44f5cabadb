"""Find damaged files of a warehouse by their footers, which must match the files' paths, and leave
them out with a warning each."""

import io
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError
from upath import UPath

from pipeline.core.calls import Call
from pipeline.core.errors import DamagedError, LeftOutWarning
from pipeline.core.rows import RECORDS, empty_table, is_per_question, schema
from pipeline.files.parquet import read_parquet
from pipeline.files.storage import ABSENT, is_remote, map_files, read, with_retries
from pipeline.store.shards.shard_content import OF_EVERY_TABLE, OF_QUESTIONS, ROWS_WRITTEN

_UNREADABLE = (IsADirectoryError, PermissionError)  # the file, rather than the storage
_END_BYTES = 65_536  # fetched of a remote file; most footers are smaller


def check_shard(path: UPath) -> bool:
    """True if the shard has the columns that this version writes. Raises DamagedError as
    `shard_footer` does, also if the file does not exist."""
    try:
        footer = shard_footer(path)
    except FileNotFoundError:
        raise damaged_shard(path, "cannot be read (no such file)") from None
    record = RECORDS.get(path.parent.parent.name)
    return record is not None and bool(footer.schema.equals(_parquet_schema(schema(record))))


def shard_footer(path: UPath) -> Any:
    """The Parquet metadata of a shard. Raises DamagedError unless it can be read, has the columns
    of its table and as many rows as were written, all of the step and unit in its path;
    FileNotFoundError if it does not exist."""
    record = RECORDS.get(path.parent.parent.name)  # None: of a plugin that is not loaded
    # Any other column may be missing, and is then null.
    needed: tuple[str, ...] = OF_EVERY_TABLE
    if record is Call:
        needed += Call.key
    elif record and is_per_question(record):
        needed += OF_QUESTIONS
    try:
        footer = read_footer(path)
        metadata = footer.metadata or {}
        written = metadata.get(ROWS_WRITTEN.encode(), b"none").decode(errors="replace")
        if written != str(footer.num_rows):
            raise FlawError(f"{footer.num_rows} rows, {written} were written")
        check_columns(footer, schema(record) if record else None, needed)
        _check_constant(footer, "step_id", path.parent.name)
        _check_constant(footer, "unit", path.name.split(".")[0])
    except FlawError as flaw:
        raise damaged_shard(path, str(flaw)) from None
    return footer


def check_table(path: UPath, columns: Any, fix: str) -> None:
    """Raise DamagedError, which ends in `fix`, unless the file can be read and has `columns` (an
    Arrow schema)."""
    try:
        check_columns(read_footer(path), columns, columns.names)
    except (FlawError, FileNotFoundError) as flaw:
        raise DamagedError(path, f"{flaw}; {fix}") from None


def damaged_shard(path: UPath, what: str) -> DamagedError:
    """The error for a damaged shard; its rows and calls must be deleted together."""
    both = f"{path.parent.name}/{path.name}"
    return DamagedError(
        path, f"{what}; delete tables/*/{both} and run the same command to make it again"
    )


class FlawError(Exception):
    """A flaw of a file, in a few words."""


@contextmanager
def flaws_of_content() -> Iterator[None]:
    """Turn Arrow's errors in the `with` block into FlawError; Arrow's OSErrors have no errno."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        first, *_ = str(error).splitlines() or [""]
        raise FlawError(f"cannot be read ({first})") from None


def read_footer(path: UPath) -> Any:
    """The Parquet metadata of a file, from its end. Raises FlawError, FileNotFoundError, and
    StorageError, which does not mean that the file is damaged."""
    if is_remote(path):
        end = _end(path)
        with flaws_of_content():
            return pq.read_metadata(io.BytesIO(end))

    def opened() -> Any:
        with path.open("rb") as file, flaws_of_content():
            return pq.read_metadata(file)

    try:
        return with_retries(opened, path, (FileNotFoundError, *_UNREADABLE))
    except _UNREADABLE as error:
        raise FlawError(f"cannot be read ({error.strerror})") from None


def _end(path: UPath) -> bytes:
    """Enough of a remote file's end to hold its footer, mostly in one request."""
    cat = partial(path.fs.cat_file, path.path, start=-_END_BYTES)
    end: bytes = with_retries(cat, path, (FileNotFoundError,))
    size = int.from_bytes(end[-8:-4], "little") + 8
    return read(path) if len(end) == _END_BYTES < size else end


def check_columns(footer: Any, columns: Any, needed: Iterable[str]) -> None:
    """Raise FlawError unless a file has the columns that are `needed`, and its columns have the
    types in `columns` (an Arrow schema)."""
    if columns is not None and footer.schema.equals(_parquet_schema(columns)):
        return
    stored = footer.schema.to_arrow_schema()
    if missing := [name for name in needed if name not in stored.names]:
        raise FlawError(f"lacks the columns {', '.join(missing)}")
    for field in columns or ():
        type_ = stored.field(field.name).type if field.name in stored.names else field.type
        if not _fits(type_, field.type):
            raise FlawError(f"the column {field.name} is {type_}, not {field.type}")


def _fits(stored: Any, wanted: Any) -> bool:
    """True if the types agree, except for fields that a struct gained or lost since."""
    if pa.types.is_list(stored) and pa.types.is_list(wanted):
        return _fits(stored.value_type, wanted.value_type)
    if pa.types.is_struct(stored) and pa.types.is_struct(wanted):
        both = {field.name for field in stored} & {field.name for field in wanted}
        return all(_fits(stored.field(name).type, wanted.field(name).type) for name in both)
    return bool(stored == wanted)


def _check_constant(footer: Any, column: str, value: str) -> None:
    """Raise FlawError if the column's statistics show another value, as in a shard copied to
    another step or unit, whose rows would count twice."""
    index = footer.schema.names.index(column)
    for group in range(footer.num_row_groups):
        statistics = footer.row_group(group).column(index).statistics
        if statistics is not None and statistics.has_min_max:
            for other in {statistics.min, statistics.max} - {value}:
                raise FlawError(f"its rows are of the {column} {other}")


@cache
def _parquet_schema(columns: Any) -> Any:
    content = io.BytesIO()
    pq.write_table(empty_table(columns), content)
    return pq.read_metadata(content).schema


A = TypeVar("A")
RERUN = "delete it and run the same command again"
MOVE_STEP = "move the file and the step's folders in tables/ elsewhere, or name another warehouse"


def read_parsed(file: UPath, parse: Callable[[bytes], A], fix: str = RERUN) -> A | None:
    """The content of a file, parsed by `parse`; None if it does not exist. Raises DamagedError,
    which ends in `fix`, if `parse` raises ValueError."""
    try:
        return parse(with_retries(file.read_bytes, file, (*ABSENT, PermissionError)))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError as error:
        raise DamagedError(file, f"{_first(error)}; {fix}") from None
    except _UNREADABLE as error:
        raise DamagedError(file, f"cannot be read ({error.strerror}); {fix}") from None


def _first(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return " ".join(str(error).split())
    first = error.errors()[0]
    return ": ".join([".".join(map(str, first["loc"])), first["msg"]]).removeprefix(": ")


class DamagedFiles:
    """Files that a reader leaves out; `rows` has each one's name (`file`) and reason (`why`)."""

    def __init__(self) -> None:
        self.rows: list[dict[str, str]] = []

    def add(self, error: DamagedError) -> None:
        """Leave out a file and warn of it, once."""
        if error.file in (row["file"] for row in self.rows):
            return
        self.rows.append({"file": error.file, "why": error.why})
        warnings.warn(str(error), LeftOutWarning, stacklevel=2)

    def unless_damaged(self, read: Callable[[], A], otherwise: A) -> A:
        """The result of `read`; `otherwise` if its file is damaged, which is then left out."""
        try:
            return read()
        except DamagedError as error:
            self.add(error)
            return otherwise

    def sound(self, files: Sequence[UPath], check: Callable[[UPath], object]) -> list[UPath]:
        """The files for which `check` does not raise DamagedError."""

        def error_of(file: UPath) -> DamagedError | None:
            try:
                check(file)
            except DamagedError as error:
                return error
            return None

        errors = map_files(error_of, files, files[0]) if files else []
        for error in filter(None, errors):
            self.add(error)
        return [file for file, error in zip(files, errors, strict=True) if error is None]


def damaged_inside(files: Iterable[UPath]) -> DamagedError | None:
    """The error for the first file whose rows cannot be read, or None. Reads all of every file."""
    for file in files:
        try:
            read_parquet(read(file))
        except (pa.ArrowException, OSError) as error:
            return damaged_shard(file, f"cannot be read ({_first(error)})")
    return None
