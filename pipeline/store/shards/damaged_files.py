"""Find damaged files of a warehouse by their footers, and leave them out with a warning each."""

import io
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError
from upath import UPath

from pipeline.core.errors import DamagedError, LeftOutWarning
from pipeline.core.rows import RECORDS, empty_table, schema
from pipeline.files.parquet import read_parquet
from pipeline.files.storage import is_remote, map_files, read, with_retries

_NEEDED = ("step_id", "unit", "document_id")  # any other column may be missing, and is then null
ROWS_WRITTEN = "gistmill.num_rows"  # in a shard's footer: the number of its rows
MOVE_STEP = "move the file and the step's folders in tables/ elsewhere, or name another warehouse"
_END_BYTES = 65_536  # fetched of a remote file; most footers are smaller
A = TypeVar("A")


class FlawError(Exception):
    """A flaw of a file, in a few words."""


def shard_footer(path: UPath) -> Any:
    """The Parquet metadata of a shard. Raises FileNotFoundError if it does not exist, DamagedError
    if it cannot be read, lacks columns of its table, or has more or fewer rows than were written.
    """
    record = RECORDS.get(path.parent.parent.name)  # None: of a plugin that is not loaded
    try:
        footer = read_footer(path)
        metadata = footer.metadata or {}
        written = metadata.get(ROWS_WRITTEN.encode(), b"none").decode(errors="replace")
        if written != str(footer.num_rows):
            raise FlawError(f"{footer.num_rows} rows, {written} were written")
        _check_columns(footer, schema(record) if record else None, _NEEDED)
    except FlawError as flaw:
        raise damaged_shard(path, str(flaw)) from None
    return footer


def check_table(path: UPath, columns: Any, fix: str) -> None:
    """Raise DamagedError unless the file can be read and has `columns` (an Arrow schema); `fix`:
    what to do."""
    try:
        _check_columns(read_footer(path), columns, columns.names)
    except (FlawError, FileNotFoundError) as flaw:
        raise DamagedError(path, f"{flaw}; {fix}") from None


def damaged_shard(path: UPath, what: str) -> DamagedError:
    """The error for a damaged shard; its rows and calls must be deleted together."""
    both = f"tables/*/{path.parent.name}/{path.name}"
    return DamagedError(path, f"{what}; delete {both} and run the same command to make it again")


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

    def opened() -> Any:
        if not is_remote(path):
            with path.open("rb") as file, flaws_of_content():
                return pq.read_metadata(file)
        end: bytes = path.fs.cat_file(path.path, start=-_END_BYTES)  # mostly the only request
        if len(end) == _END_BYTES < int.from_bytes(end[-8:-4], "little") + 8:
            end = path.read_bytes()
        with flaws_of_content():
            return pq.read_metadata(io.BytesIO(end))

    return with_retries(opened, path, (FileNotFoundError,))


def has_columns(footer: Any, columns: Any) -> bool:
    """True if a file has the columns of an Arrow schema, and no others."""
    return bool(footer.schema.equals(_parquet_schema(columns)))


@cache
def _parquet_schema(columns: Any) -> Any:
    content = io.BytesIO()
    pq.write_table(empty_table(columns), content)
    return pq.read_metadata(content).schema


def _check_columns(footer: Any, columns: Any, needed: Iterable[str]) -> None:
    """Raise FlawError unless a file has the columns that are `needed`, and its columns have the
    types in `columns` (an Arrow schema), except for fields that a struct gained or lost since."""
    if columns is not None and has_columns(footer, columns):
        return
    stored = footer.schema.to_arrow_schema()
    if missing := [name for name in needed if name not in stored.names]:
        raise FlawError(f"lacks the columns {', '.join(missing)}")
    try:
        pa.unify_schemas([stored, columns or stored], promote_options="permissive")
    except pa.ArrowException as error:
        raise FlawError(str(error).removeprefix("Unable to merge: ")) from None


def damaged_inside(files: Iterable[UPath]) -> DamagedError | None:
    """The error for the first file whose rows cannot be read, or None. Reads all of every file."""
    for file in files:
        try:
            read_parquet(read(file))
        except (pa.ArrowException, OSError) as error:
            return damaged_shard(file, f"cannot be read ({' '.join(str(error).split())})")
    return None


def read_parsed(
    file: UPath, parse: Callable[[bytes], A], fix: str = "delete it and run the same command again"
) -> A | None:
    """A file's content, parsed by `parse`; None if it does not exist. Raises DamagedError if
    `parse` raises ValueError; `fix`: what to do."""
    try:
        return parse(read(file))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValidationError as error:
        first = error.errors()[0]
        what = ": ".join([".".join(map(str, first["loc"])), first["msg"]]).removeprefix(": ")
    except ValueError as error:
        what = " ".join(str(error).split())
    raise DamagedError(file, f"{what}; {fix}")


class DamagedFiles:
    """Files that a reader leaves out. `rows`: each one's name (`file`) and reason (`why`)."""

    def __init__(self) -> None:
        self.rows: list[dict[str, str]] = []

    def add(self, error: DamagedError) -> None:
        """Leave out a file and warn of it, once."""
        if error.file not in (row["file"] for row in self.rows):
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

        def damage(file: UPath) -> DamagedError | None:
            try:
                check(file)
            except DamagedError as error:
                return error
            return None

        errors = map_files(damage, files, files[0]) if files else []
        for error in filter(None, errors):
            self.add(error)
        return [file for file, error in zip(files, errors, strict=True) if error is None]
