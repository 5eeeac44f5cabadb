"""Read the rows of JSON lines, JSON lists, CSV and Parquet files, each with its line number.

Files are streamed. Where a damaged file cannot be read on, a single row without value stands for
the remainder.
"""

import csv
import gzip
import json
import math
import re
import zlib
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import IO, Any

import ijson
from upath import UPath

from pipeline.core.errors import UsageError
from pipeline.files.parquet import read_parquet_rows
from stages.corpora.reading.corpus_row import Row
from stages.corpora.reading.opening import (
    InPieces,
    NotTextError,
    Utf8Copy,
    lines_of,
    opened,
    refuse_special,
    up_to_most,
)
from stages.corpora.reading.row_checks import kind_of, without_lone_surrogates, without_nan
from stages.extract.extracted import MOST_BYTES
from stages.text.encodings import Decoded, decoded, decoded_lines

# Surrogates, escaped or raw. Most are half of a pair; a lone one cannot be stored as UTF-8.
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]")
_BOM = b"\xef\xbb\xbf"
_DELIMITERS = ",;\t|"  # of CSV; the first is the usual one
_STATED = re.compile('\ufeff?"?sep=(.)"?[\r\n]*', re.IGNORECASE)  # Excel's line before the header
_PIECE_BYTES = 2**16  # that ijson reads at once
csv.field_size_limit(MOST_BYTES)  # a cell may be a book


def read_rows(file: UPath, advice: str = "set corpus.path=...") -> Iterator[Row]:
    """Yield the rows of one file. The type follows from the suffix, without a final `.gz`:

    `.parquet`; `.csv`, `.tsv`; `.json` is a list of objects, or one object, or JSON lines; anything
    else is JSON lines. Raises UsageError where the file cannot be opened, or is no
    Parquet; `advice` is what to do then.
    """
    suffixes = [suffix for suffix in file.suffixes if suffix != ".gz"]
    read = _CONTAINERS.get(suffixes[-1] if suffixes else "", _lines)
    place = Row(file, 1, None)
    try:
        for place in read(file):
            yield place
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        why = str(error).splitlines()[0]
        wrong = f"the file ends early or is damaged ({why}); fetch it again"
        yield Row(file, place.line + 1, None, wrong)
    except NotTextError as error:
        raise UsageError(f"{file}: {error.strerror}; {advice}") from None
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror or error}; {advice}") from error


def _lines(file: UPath) -> Iterator[Row]:
    """Yield a row per line that is not blank."""
    start = 0
    with opened(file) as content:
        for number, line in enumerate(lines_of(content), 1):
            if line.strip():
                yield _json_row(file, number, line, start)
            start += len(line)


def row_at(file: UPath, number: int, start: int) -> Row:
    """Reread the row whose line starts at byte `start` of a JSON lines file."""
    with opened(file) as content:
        content.seek(start)
        return _json_row(file, number, content.readline(), start)


def _json_row(file: UPath, number: int, line: bytes, start: int = 0) -> Row:
    try:
        value = json.loads(line.rstrip(b"\r\n"), parse_float=_finite, parse_constant=_finite)
        if _SURROGATE.search(line):
            value = json.loads(without_lone_surrogates(json.dumps(value, ensure_ascii=False)))
    except (ValueError, RecursionError) as error:
        wrong = f"not JSON ({_reason(error)}); fix or delete the line"
        return Row(file, number, None, wrong, start)
    return replace(_value_row(file, number, value, "fix or delete the line"), start=start)


def _value_row(file: UPath, number: int, value: Any, advice: str) -> Row:
    if isinstance(value, dict):
        return Row(file, number, value)
    return Row(file, number, None, f"{kind_of(value)}, not an object; {advice}")


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg}, column {error.colno}"
    if isinstance(error, UnicodeDecodeError):
        advice = _advice(error.object[max(0, error.start - _PIECE_BYTES) :][: 2 * _PIECE_BYTES])
        return f"byte {error.start + 1} is not UTF-8{f', {advice}' if advice else ''}"
    said = error.args[0] if error.args else ""  # ijson's are bytes, with a picture of the place
    text = said.decode(errors="replace") if isinstance(said, bytes) else str(error)
    return text.splitlines()[0]


def _advice(sample: bytes) -> str | None:
    """Name the encoding of bytes that are not UTF-8; None where they are of none, or torn. JSON is
    UTF-8: it is not read as anything else."""
    try:
        encoding = decoded(sample).encoding
    except UnicodeError:
        return None
    return None if encoding == "utf-8" else f"save the file as UTF-8, it seems to be {encoding}"


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"{number} is no JSON number")
    return value


def _json(file: UPath) -> Iterator[Row]:
    """Read a list of objects; or JSON lines, where the first line is an object by itself; or else
    one object."""
    with opened(file) as content:
        if content.read(1024).removeprefix(_BOM).lstrip()[:1] == b"[":
            yield from _list(file, content)
            return
        content.seek(0)
        first = next(lines_of(content), b"")
        if _json_row(file, 1, first).value is None:
            yield _json_row(file, 1, first + up_to_most(content))
            return
    yield from _lines(file)


def _list(file: UPath, content: IO[bytes]) -> Iterator[Row]:
    """Yield a row per entry, streamed and numbered from 1."""
    number = 0
    content.seek(0)
    if content.read(len(_BOM)) != _BOM:
        content.seek(0)
    pieces = InPieces(content)
    try:
        for number, value in enumerate(ijson.items(pieces, "item", use_float=True), 1):
            pieces.next_piece()
            yield _value_row(file, number, value, "fix or delete it")
    except (ijson.JSONError, UnicodeDecodeError) as error:
        why = _reason(error)
        content.seek(max(0, content.tell() - _PIECE_BYTES))
        advice = _advice(content.read(_PIECE_BYTES)) or "fetch it again"
        yield Row(file, number + 1, None, f"not JSON from here on ({why}); {advice}")


def _csv(file: UPath) -> Iterator[Row]:
    """Yield a row per record, keys from the header; `line` is where the record begins."""
    with opened(file) as content:
        lines = _Lines(content)
        first = next(lines, "").removeprefix("\ufeff")
        delimiter = "\t" if ".tsv" in file.suffixes else _delimiter(first)
        records = csv.reader(chain([first], lines), delimiter=delimiter, strict=True)
        names: list[str] = []
        before = 0
        try:
            for cells in records:
                line, before = before + 1, records.line_num
                if names and cells:
                    note = lines.take_note(file, line)
                    yield replace(_record(file, line, names, cells), note=note)
                names = names or _header(file, cells)
        except csv.Error as error:
            wrong = f"no CSV from here on ({error}); fix the quotes"
            yield Row(file, before + 1, None, wrong)


class _Lines:
    """Iterates over the lines of a CSV file as text."""

    def __init__(self, content: IO[bytes]) -> None:
        self._lines = decoded_lines(lines_of(content))
        self._detected = content.detected if isinstance(content, Utf8Copy) else None
        self._uncertain: list[Decoded] = []

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        found = next(self._lines)
        if self._detected:
            found = replace(found, encoding=self._detected, is_detected=True)
        if found.note:
            self._uncertain.append(found)
        return found.text

    def take_note(self, file: UPath, line: int) -> str | None:
        """The note of the record at `line`: on all lines since this was last called. Of an encoding
        that was detected it is the same for all records."""
        found, self._uncertain = self._uncertain, []
        if not found:
            return None
        lost = sum(one.num_lost for one in found)
        place = Row(file, line, None).place if lost else without_lone_surrogates(file.name)
        return f"{place}: {replace(found[0], num_lost=lost).note}"


def _delimiter(header: str) -> str:
    """The delimiter that the first line states, or that of the header: the sign that, outside of
    quotes, makes the most columns."""
    if stated := _STATED.fullmatch(header):
        return stated[1]

    def columns(delimiter: str) -> int:
        try:
            return len(next(csv.reader([header], delimiter=delimiter), []))
        except csv.Error:
            return 0

    return max(_DELIMITERS, key=columns)


def _header(file: UPath, cells: list[str]) -> list[str]:
    """The names of the columns; none in the line that states the delimiter."""
    names = [cell.strip() for cell in cells]
    if names[:1] and _STATED.fullmatch(names[0] if names[0][4:] else f"{names[0]};"):
        return []
    for name in filter(None, names):
        if names.count(name) > 1:
            raise UsageError(f"{file}:1: two columns are called {name!r}; rename one")
    return names


def _record(file: UPath, line: int, names: list[str], cells: list[str]) -> Row:
    """A row without its cells beyond the header that are empty. Of several columns without a name
    each is called by its number."""
    if any(names[len(cells) :]) or any(cells[len(names) :]):
        wrong = f"{len(cells)} cells, the header has {len(names)}; quote what holds a separator"
        return Row(file, line, None, wrong)
    try:
        "".join(cells).encode()
    except UnicodeEncodeError:
        wrong = "text of no known encoding; save the file as UTF-8"
        return Row(file, line, None, wrong)
    is_one = names.count("") == 1
    columns = enumerate(zip(names, cells, strict=False), 1)
    value = {name or ("" if is_one else f"column {n}"): cell or None for n, (name, cell) in columns}
    return Row(file, line, value)


def _parquet(file: UPath) -> Iterator[Row]:
    refuse_special(file)
    rows = map(without_nan, read_parquet_rows(file))
    yield from (Row(file, number, value) for number, value in enumerate(rows, 1))


_CONTAINERS = {".parquet": _parquet, ".csv": _csv, ".tsv": _csv, ".json": _json}
