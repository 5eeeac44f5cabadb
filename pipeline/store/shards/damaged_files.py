"""Damaged files of a warehouse: found, and left out with a warning each."""

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import pyarrow as pa
from pydantic import ValidationError
from upath import UPath

from pipeline.core.errors import DamagedError, LeftOutWarning
from pipeline.files.parquet import read_parquet
from pipeline.files.place import map_files, read
from pipeline.files.storage_retries import with_retries
from pipeline.store.shards.footers import damaged_shard

A = TypeVar("A")
RERUN = "delete it and run the same command again"
MOVE_STEP = "move the file and the step's folders in tables/ elsewhere, or name another warehouse"

# What is wrong with the file itself, rather than with the storage.
_OF_THE_FILE = (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)


def read_parsed(file: UPath, parse: Callable[[bytes], A], fix: str = RERUN) -> A | None:
    """The content of a file, parsed by `parse`; None if it does not exist. Raises DamagedError,
    which ends in `fix`, if `parse` raises ValueError."""
    try:
        return parse(with_retries(file.read_bytes, file, _OF_THE_FILE))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise DamagedError(file, f"{_first(error)}; {fix}") from None
    except (IsADirectoryError, NotADirectoryError, PermissionError) as error:
        raise DamagedError(file, f"cannot be read ({error.strerror}); {fix}") from None


def _first(error: Exception) -> str:
    """The first mistake that an error reports, on one line."""
    if not isinstance(error, ValidationError):
        return " ".join(str(error).split())
    first = error.errors()[0]
    return ": ".join([".".join(map(str, first["loc"])), first["msg"]]).removeprefix(": ")


class DamagedFiles:
    """The files that a reader leaves out; `rows`: each with its name (`file`) and the reason
    (`why`)."""

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
        """The files of which `check` does not raise DamagedError."""

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
    """The error for the first of the files whose rows cannot be read; None if all can. Reads all of
    every file."""
    for file in files:
        try:
            read_parquet(read(file))
        except (pa.ArrowException, OSError) as error:
            return damaged_shard(file, f"cannot be read ({_first(error)})")
    return None
