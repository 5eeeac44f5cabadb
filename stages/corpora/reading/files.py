"""Find the files of a corpus and read their rows with line numbers: JSON lines, JSON lists, CSV and
Parquet, gzip or not.

Files are streamed, except those in UTF-16 and UTF-32. Where a damaged file cannot be read on, one
row without a value stands for the rest.
"""

import csv
import errno
import gzip
import io
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from typing import IO, Any

import ijson
from upath import UPath

from pipeline.core.errors import UsageError
from pipeline.files.parquet import read_parquet_rows
from pipeline.files.storage import is_remote
from stages.corpora.reading import values
from stages.corpora.reading.values import BadInputError, Row
from stages.text.encodings import Decoded, decoded, decoded_lines, marked, unmarked_utf_16

_HEAD_BYTES = 2**16
_GZIP = b"\x1f\x8b"
_GZIP_ERRORS = (EOFError, zlib.error, gzip.BadGzipFile)
# First bytes of files that are often taken for text.
_MAGIC = {
    b"%PDF-": "a PDF", b"PK\x03\x04": "a zip archive, or a .docx or .epub",
    b"\xd0\xcf\x11\xe0": "an old Word file", b"{\\rtf": "RTF", b"\x89PNG": "a picture",
    b"BZh": "compressed by bzip2", b"\xfd7zXZ": "compressed by xz",
    b"\x28\xb5\x2f\xfd": "compressed by zstd",
}  # fmt: skip
# Surrogates, escaped or raw. Most are half of a pair; a lone one cannot be stored as UTF-8.
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]")
_BOM = b"\xef\xbb\xbf"
csv.field_size_limit(2**31 - 1)  # a cell may be a book


class NotTextError(OSError):
    """A file that cannot be read as text; `strerror` says what it is."""

    def __init__(self, what: str) -> None:
        super().__init__(errno.EINVAL, what)


def files_of(path: UPath, *patterns: str) -> list[UPath]:
    """`path` itself if it is a file. Of a folder the files that match, by name; if it has none,
    those in its folder `data`, where Hugging Face datasets have them. Raises UsageError where no
    file matches."""
    if not path.is_dir():
        return [path]
    packed = [f"{pattern}.gz" for pattern in patterns]
    for folder in (path, path / "data"):
        matches = {file for pattern in (*patterns, *packed) for file in folder.glob(pattern)}
        if files := sorted(file for file in matches if not file.is_dir()):
            return files
    raise UsageError(f"{path}: no {' or '.join(patterns)} in this folder; set corpus.path=...")


def one_of(folder: UPath, name: str, *suffixes: str) -> UPath | None:
    """The folder's file of this name and one of the suffixes, or None. Raises UsageError where it
    has two."""
    files = [file for end in suffixes if (file := folder / f"{name}.{end}").exists()]
    if len(files) > 1:
        raise UsageError(f"{folder}: both {files[0].name} and {files[1].name}; keep one")
    return files[0] if files else None


def split_of(path: UPath, split: str | None, *suffixes: str) -> UPath:
    """The file or subfolder named after the split; `path` itself where `split` is None. Raises
    UsageError where the folder has neither."""
    if split is None:
        return path
    names = [split, *(f"{split}.{suffix}" for suffix in suffixes)]
    for name in names:
        if (path / name).exists():
            return path / name
    raise UsageError(f"{path}: no {' or '.join(names)} here; set corpus.path or corpus.split")


def rows_of(files: Sequence[UPath]) -> Iterator[Row]:
    """The rows of the files, in order. Raises UsageError where none of them is a JSON object."""
    rows = chain.from_iterable(map(read_rows, files))
    unreadable: list[Row] = []
    for row in rows:
        unreadable.append(row)
        if row.value is not None:
            yield from unreadable
            yield from rows
            return
    where = files[0] if len(files) == 1 else files[0].parent
    first = unreadable[0].detail(unreadable[0].wrong) if unreadable else "set corpus.path=..."
    raise UsageError(f"{where}: no line or row in it is an object; {first}")


def read_rows(file: UPath, advice: str = "set corpus.path=...") -> Iterator[Row]:
    """Yield the rows of one file. Its suffix before `.gz` tells its kind: `.parquet`, `.csv`,
    `.tsv`, or `.json` for a list of objects, one object, or JSON lines; others are JSON lines.
    Raises UsageError, ending in `advice`, where the file cannot be opened or is no Parquet."""
    suffix = [suffix for suffix in ("", *file.suffixes) if suffix != ".gz"][-1]
    read = {".parquet": _parquet, ".csv": _csv, ".tsv": _csv}.get(suffix, _json)
    line = 0
    try:
        refuse_irregular(file)
        for row in read(file):
            line = row.line
            yield row
    except _GZIP_ERRORS as error:
        yield Row(file, line + 1, None, f"the gzip file is damaged ({error}); fetch it again")
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror or error}; {advice}") from error


@contextmanager
def opened(file: UPath) -> Iterator[IO[bytes]]:
    """Open a file for reading bytes, gzip decompressed, UTF-16 and UTF-32 as UTF-8. Raises
    NotTextError where it is no text."""
    with file.open("rb") as raw:
        content: Any = gzip.open(raw) if raw.read(2) == _GZIP else raw  # noqa: SIM115
        raw.seek(0)
        head = content.read(_HEAD_BYTES)
        refuse_binary(head)
        content.seek(0)
        if (marked(head) or unmarked_utf_16(head) or "utf-8-sig") != "utf-8-sig":
            whole = decoded(content.read())
            if whole.num_lost:
                raise NotTextError(f"damaged {whole.encoding.upper()}; save it as UTF-8")
            content = io.BytesIO(whole.text.encode("utf-8", "surrogatepass"))
        yield content


def refuse_irregular(file: UPath) -> None:
    """Raise NotTextError for a folder, a FIFO, which may never end, or a device."""
    if not is_remote(file) and file.exists() and not file.is_file():
        raise NotTextError("a folder, not a file" if file.is_dir() else "no regular file")


def read_whole(file: UPath) -> bytes:
    """The content of a file, gzip decompressed. Raises BadInputError for damaged gzip, OSError."""
    refuse_irregular(file)
    content = file.read_bytes()
    try:
        return gzip.decompress(content) if content.startswith(_GZIP) else content
    except _GZIP_ERRORS as error:
        why = str(error).split("\n")[0]
        raise BadInputError(f"the gzip file is damaged ({why}); fetch it again") from None


def refuse_binary(head: bytes) -> None:
    """Raise NotTextError, naming the kind of file, for the head of a binary file."""
    for magic, what in _MAGIC.items():
        if head.startswith(magic):
            raise NotTextError(f"{what}, not text; convert it to text")


def decoded_text(content: bytes) -> Decoded:
    """Decode a text file of any encoding. Raises BadInputError where it is no text of a known
    encoding."""
    try:
        refuse_binary(content)
        return decoded(content)
    except NotTextError as error:
        raise BadInputError(f"{error.strerror}; fix or delete it") from None
    except UnicodeError:
        raise BadInputError("text of no known encoding; save it as UTF-8 or delete it") from None


def _json(file: UPath) -> Iterator[Row]:
    """Yield the rows of JSON lines; of a file called .json also those of a list of objects, which
    are numbered from 1, or of one object."""
    with opened(file) as content:
        lines: Iterable[bytes] = content
        if ".json" in file.suffixes:
            head = content.read(1024)
            content.seek(start := len(_BOM) if head.startswith(_BOM) else 0)
            if head[start:].lstrip()[:1] == b"[":
                yield from _list(file, content)
                return
            first = content.readline()
            if _json_row(file, 1, first).value is None:
                yield _json_row(file, 1, first + content.read())
                return
            lines = chain([first], content)
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield _json_row(file, number, line)


def _list(file: UPath, content: IO[bytes]) -> Iterator[Row]:
    number = 0
    try:
        for number, value in enumerate(ijson.items(content, "item", use_float=True), 1):
            yield values.row_of(file, number, value)
    except (ijson.JSONError, UnicodeDecodeError) as error:
        why = error.args[0]  # of ijson perhaps bytes; its other lines draw the place
        why = why.decode(errors="replace") if isinstance(why, bytes) else str(error)
        wrong = f"not JSON from here on ({why.splitlines()[0]}); fetch it again"
        yield Row(file, number + 1, None, wrong)


def _json_row(file: UPath, number: int, line: bytes) -> Row:
    try:
        # NaN, which JSON lacks, is a missing value, as in Parquet.
        value = json.loads(line.rstrip(b"\r\n"), parse_constant=lambda name: None)
        if _SURROGATE.search(line):
            text = json.dumps(value, ensure_ascii=False)
            value = json.loads(values.without_lone_surrogates(text))
    except (ValueError, RecursionError) as error:
        return Row(file, number, None, f"not JSON ({error}); fix or delete the line")
    return values.row_of(file, number, value)


def _csv(file: UPath) -> Iterator[Row]:
    """Yield a row per record, with keys from the header; `line` is where the record begins."""
    with opened(file) as content:
        doubts: list[Decoded] = []  # the lines of a record whose encoding is in doubt

        def texts() -> Iterator[str]:
            for line in decoded_lines(content):
                doubts.extend([line] if line.note else [])
                yield line.text

        lines, names, before = texts(), list[str](), 0
        try:
            header = next(lines, "").removeprefix("\ufeff")
            # The separator is the sign that splits the header into the most columns.
            signs = "\t" if ".tsv" in file.suffixes else ",;\t|"
            columns = {sign: next(csv.reader([header], delimiter=sign), []) for sign in signs}
            delimiter = max(columns, key=lambda sign: len(columns[sign]))
            records = csv.reader(chain([header], lines), delimiter=delimiter, strict=True)
            for cells in records:
                line, before = before + 1, records.line_num
                if not names:
                    names = [cell.strip() for cell in cells]
                    for name in (name for name in names if name and names.count(name) > 1):
                        twice = f"two columns are called {name!r}; rename one"
                        raise UsageError(f"{file}:1: {twice}")
                elif cells:
                    yield _record(Row(file, line, None), names, cells, doubts)
                    doubts.clear()
        except csv.Error as error:
            yield Row(file, before + 1, None, f"no CSV from here on ({error}); fix the quotes")
        except UnicodeError as error:
            yield Row(file, before + 1, None, f"{error} from here on; save the file as UTF-8")


def _record(row: Row, names: Sequence[str], cells: Sequence[str], doubts: Sequence[Decoded]) -> Row:
    """The row with its values, and a note on `doubts`. A column without a name is called by its
    number where there are several."""
    if any(names[len(cells) :]) or any(cells[len(names) :]):
        wrong = f"{len(cells)} cells, the header has {len(names)}; quote what holds a separator"
        return replace(row, wrong=wrong)
    is_alone = names.count("") == 1
    value = {
        name or ("" if is_alone else f"column {number}"): cell or None
        for number, (name, cell) in enumerate(zip(names, cells, strict=False), 1)
    }
    note = None
    if doubts:  # on a detected encoding it is the same for all records, and so printed once
        num_lost = sum(line.num_lost for line in doubts)
        place = row.place if num_lost else values.name_of(row.file.name)
        note = f"{place}: {replace(doubts[0], num_lost=num_lost).note}"
    return replace(row, value=value, note=note)


def _parquet(file: UPath) -> Iterator[Row]:
    for number, value in enumerate(read_parquet_rows(file), 1):
        yield Row(file, number, values.without_nan(value))
