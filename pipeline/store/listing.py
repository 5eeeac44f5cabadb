"""Which files of a warehouse can be read. Others are left out, each with a warning."""

import io
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError
from upath import UPath

from pipeline.errors import DamagedError, LeftOutWarning
from pipeline.place import each, is_remote, read
from pipeline.retries import retried
from pipeline.store.footers import damaged_shard
from pipeline.store.shard_files import shard_name

A = TypeVar("A")
MOVE_STEP = "move the file and the step's folders in tables/ elsewhere, or name another warehouse"

# What is wrong with the file itself, rather than with the storage.
_OF_THE_FILE = (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)


def parsed(file: UPath, parse: Callable[[bytes], A], fix: str) -> A:
    """The content of a file as `parse` has it. Raises DamagedError, which ends in `fix`, where it
    raises ValueError, and FileNotFoundError."""
    try:
        return parse(retried(file.read_bytes, file, _OF_THE_FILE))
    except ValueError as error:
        raise DamagedError(file, f"{_first(error)}; {fix}") from None
    except (IsADirectoryError, NotADirectoryError, PermissionError) as error:
        raise DamagedError(file, f"cannot be read ({error.strerror}); {fix}") from None


def _first(error: Exception) -> str:
    """The first thing that is wrong, on one line."""
    if not isinstance(error, ValidationError):
        return " ".join(str(error).split())
    first = error.errors()[0]
    return ": ".join([".".join(map(str, first["loc"])), first["msg"]]).removeprefix(": ")


class LeftOut:
    """The files that a reader leaves out: `rows` of file and why."""

    def __init__(self) -> None:
        self.rows: list[dict[str, str]] = []

    def add(self, error: DamagedError) -> None:
        """Leave out a file and warn of it, once."""
        if error.file in (row["file"] for row in self.rows):
            return
        self.rows.append({"file": error.file, "why": error.why})
        warnings.warn(str(error), LeftOutWarning, stacklevel=2)

    def unless_damaged(self, read: Callable[[], A], otherwise: A) -> A:
        """What `read` returns; `otherwise` where its file is damaged, which is left out."""
        try:
            return read()
        except DamagedError as error:
            self.add(error)
            return otherwise

    def sound(self, files: Sequence[UPath], check: Callable[[UPath], object]) -> list[UPath]:
        """The files of which `check` does not raise DamagedError."""
        found = []
        for file, error in zip(files, _errors(files, check), strict=True):
            if error is None:
                found.append(file)
            else:
                self.add(error)
        return found

    def misnamed(self, files: Iterable[UPath]) -> None:
        """Warn of files in a step's folder that are not named like shards; hidden ones may be."""
        for file in files:
            if not file.name.startswith(".") and shard_name(file.name) is None:
                self.add(DamagedError(file, "not named like a shard; move it elsewhere"))


def damaged_inside(files: Iterable[UPath]) -> DamagedError | None:
    """The error for the first of the files whose rows cannot be read. Reads all of every file."""
    for file in files:
        try:
            pq.read_table(io.BytesIO(read(file)))
        except (pa.ArrowException, OSError) as error:
            return damaged_shard(file, f"cannot be read ({_first(error)})")
    return None


def _errors(files: Sequence[UPath], check: Callable[[UPath], object]) -> list[DamagedError | None]:
    def error_of(file: UPath) -> DamagedError | None:
        try:
            check(file)
        except DamagedError as error:
            return error
        return None

    if files and is_remote(files[0]):
        return each(error_of, files)
    return [error_of(file) for file in files]  # threads would wait for each other
