"""Rows of JSON lines and Parquet files, each with its place, readable or not."""

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pipeline.errors import UsageError
from pipeline.store import read_parquet_rows
from stages.corpora.checks import BadInputError, kind_of, label_of, whole_text

# UTF-16 halves, escaped or raw. Most are one of a pair and harmless; the rest cannot be stored.
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]")


@dataclass(frozen=True, slots=True)
class Row:
    """A JSON object and where it stands. `value` is null where it is none: see `wrong`."""

    file: Path
    line: int  # from 1; in Parquet the number of the row
    value: dict[str, Any] | None
    wrong: str = ""
    start: int = 0  # byte where the line starts
    inside: str = ""  # `key[index]` for an object within the line's object

    @property
    def made_id(self) -> str:
        """The id of a row that has none and no content to make one from."""
        inside = f":{self.inside}" if self.inside else ""
        return f"{whole_text(self.file.stem)}:{self.line}{inside}"

    def given_id(self, key: str) -> str | None:
        """The id under `key` if the row has a legal one; an empty string is none."""
        try:
            return label_of(self.value or {}, key) or None
        except BadInputError:
            return None

    def detail(self, wrong: BadInputError | str) -> str:
        """`file:line: what is wrong; the mend`, for a row's `detail`."""
        within = f"{self.inside}: " if self.inside else ""
        return f"{whole_text(self.file.name)}:{self.line}: {within}{wrong}"


def files_of(path: Path, *patterns: str) -> list[Path]:
    """`path` itself if it is a file, else the folder's matching files, sorted by name.

    Raises UsageError where the folder has none.
    """
    if not path.is_dir():
        return [path]
    found = {file for pattern in patterns for file in path.glob(pattern) if not file.is_dir()}
    if not found:
        raise UsageError(f"{path}: no {' or '.join(patterns)} in this folder; set corpus.path=...")
    return sorted(found)


def rows_of(files: Sequence[Path]) -> Iterator[Row]:
    """The rows of JSON lines or `.parquet` files, in order; blank lines are left out.

    Raises UsageError where no row of any of them is a JSON object (checked before the first row).
    """
    unreadable: list[Row] = []
    usable = False
    for file in files:
        for row in _parquet(file) if file.suffix == ".parquet" else _lines(file):
            usable = usable or row.value is not None
            unreadable.append(row)
            if usable:
                yield from unreadable
                unreadable.clear()
    if not usable:
        where = files[0] if len(files) == 1 else files[0].parent
        first = unreadable[0].detail(unreadable[0].wrong) if unreadable else "set corpus.path=..."
        raise UsageError(f"{where}: no line or row in it is an object; {first}")


def row_at(file: Path, line: int, start: int) -> Row:
    """The row of the line that starts at byte `start`, read again."""
    with file.open("rb") as opened:
        opened.seek(start)
        return _line(file, line, start, opened.readline())


def rows_within(row: Row, key: str) -> Iterator[Row]:
    """The objects in the list under `key`; what is no object, or no list, is an unreadable row."""
    if row.value is None:
        return
    entries = row.value.get(key)
    if not isinstance(entries, list):
        wrong = f"{kind_of(entries)}, not a list; mend it"
        yield replace(row, value=None, wrong=wrong, inside=key)
        return
    for index, entry in enumerate(entries):
        value = entry if isinstance(entry, dict) else None
        wrong = "" if value is not None else f"{kind_of(entry)}, not an object; mend or delete it"
        yield replace(row, value=value, wrong=wrong, inside=f"{key}[{index}]")


def _lines(file: Path) -> Iterator[Row]:
    start = 0
    try:
        with file.open("rb") as opened:
            for number, line in enumerate(opened, 1):
                if line.strip():
                    yield _line(file, number, start, line)
                start += len(line)
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}; set corpus.path=...") from error


def _line(file: Path, number: int, start: int, line: bytes) -> Row:
    try:
        value = json.loads(line.rstrip(b"\r\n"), parse_float=_finite, parse_constant=_finite)
        if _SURROGATE.search(line):
            value = json.loads(whole_text(json.dumps(value, ensure_ascii=False)))
    except (ValueError, RecursionError) as error:
        wrong = f"not JSON ({_reason(error)}); mend or delete the line"
        return Row(file, number, None, wrong, start)
    if not isinstance(value, dict):
        wrong = f"{kind_of(value)}, not an object; mend or delete the line"
        return Row(file, number, None, wrong, start)
    return Row(file, number, value, start=start)


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg}, column {error.colno}"
    return str(error).splitlines()[0]


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"{number} is no JSON number")
    return value


def _parquet(file: Path) -> Iterator[Row]:
    return (Row(file, number, value) for number, value in enumerate(read_parquet_rows(file), 1))
