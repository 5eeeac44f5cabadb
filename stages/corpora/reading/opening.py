"""Open the files of a corpus: what is no regular file is never opened, gzip is decompressed, UTF-16
and UTF-32 are read as UTF-8."""

import codecs
import errno
import gzip
import io
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from upath import UPath

from pipeline.core.errors import UsageError
from pipeline.files.place import is_remote
from stages.extract.extracted import MOST_BYTES, TOO_LARGE
from stages.text.encodings import marked, unmarked_utf_16

_HEAD_BYTES = 2**16
_MOST_DEPTH = 10_000  # of brackets within each other
_ONE_KIND = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes({*range(256)} - {*b"[]{}"})
_GZIP = b"\x1f\x8b"
_KINDS = (
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISDIR, "a folder"),
)
# How files begin that are often taken for text.
_MAGIC = {
    b"%PDF-": "a PDF",
    b"PK\x03\x04": "a zip archive, or a .docx or .epub",
    b"\xd0\xcf\x11\xe0": "an old Word file",
    b"{\\rtf": "RTF",
    b"\x89PNG": "a picture",
    b"BZh": "compressed by bzip2",
    b"\xfd7zXZ": "compressed by xz",
    b"\x28\xb5\x2f\xfd": "compressed by zstd",
}


class NotTextError(OSError):
    """A file that cannot be read as text; `strerror` says what it is."""

    def __init__(self, what: str) -> None:
        super().__init__(errno.EINVAL, what)


def refuse_special(file: UPath) -> None:
    """Raise NotTextError for what is no regular file: reading a FIFO or a device may never end.

    Links are followed. Raises OSError where nothing can be reached there.
    """
    mode = 0 if is_remote(file) else file.stat().st_mode
    for is_kind, what in _KINDS:
        if mode and is_kind(mode):
            raise NotTextError(f"{what}, not a file")


def refuse_no_file(file: UPath, advice: str) -> None:
    """Raise UsageError, with `advice`, for what exists and is no regular file."""
    try:
        refuse_special(file)
    except NotTextError as error:
        raise UsageError(f"{file}: {error.strerror}; {advice}") from None


@contextmanager
def opened(file: UPath) -> Iterator[IO[bytes]]:
    """Open the file for reading bytes; gzip, recognized by its first two bytes, is decompressed.

    Positions of UTF-16 are those of its UTF-8. Raises NotTextError for what is no text.
    """
    refuse_special(file)
    with file.open("rb") as found:
        # A remote file's own readline takes no limit.
        raw: Any = io.BufferedReader(found) if is_remote(file) else found
        packed = raw.read(2) == _GZIP
        raw.seek(0)
        if packed:
            with gzip.open(raw) as unpacked:
                # read1: of a file that ends early, read would lose what comes before its end.
                yield _as_text(unpacked, unpacked.read1(_HEAD_BYTES))
        else:
            yield _as_text(raw, raw.read(_HEAD_BYTES))


def read_whole(file: UPath) -> bytes:
    """The content of a file. Raises NotTextError where it is no file or over MOST_BYTES."""
    refuse_special(file)
    with file.open("rb") as raw:
        return up_to_most(raw)


def up_to_most(content: Any) -> bytes:
    """The content that is left to read. Raises NotTextError where that is over MOST_BYTES."""
    found: bytes = content.read(MOST_BYTES + 1)
    if len(found) > MOST_BYTES:
        raise NotTextError(TOO_LARGE)
    return found


def lines_of(content: IO[bytes]) -> Iterator[bytes]:
    """The lines. Raises NotTextError at one over MOST_BYTES."""
    while line := content.readline(MOST_BYTES + 1):
        if len(line) > MOST_BYTES:
            raise NotTextError(TOO_LARGE)
        yield line


class InPieces:
    """Reads on as long as `next_piece` is called at least once per MOST_BYTES, and no more than
    _MOST_DEPTH brackets are open, else raises NotTextError: the parser's time and memory grow with
    the square of the depth."""

    def __init__(self, content: IO[bytes]) -> None:
        self._content = content
        self.next_piece()

    def next_piece(self) -> None:
        self._num_bytes, self._open = 0, b""

    def read(self, num_bytes: int = -1) -> bytes:
        found = self._content.read(num_bytes)
        self._num_bytes += len(found)
        if self._num_bytes > MOST_BYTES:
            raise NotTextError(TOO_LARGE)
        self._open = _unclosed(self._open + found.translate(_ONE_KIND, _NO_BRACKETS))
        return found


def _unclosed(brackets: bytes) -> bytes:
    """The brackets that are open at the end. Raises NotTextError if ever too many are."""
    for _ in range(_MOST_DEPTH):  # each time the innermost are taken away
        left = brackets.replace(b"[]", b"")
        if left == brackets:
            break
        brackets = left
    depth = brackets.count(b"[")
    if depth >= _MOST_DEPTH or b"[]" in brackets:
        raise NotTextError(f"not JSON: over {_MOST_DEPTH:,} brackets are open at once")
    return b"[" * depth


def refuse_binary(head: bytes) -> None:
    """Raise NotTextError, which names the kind of file, where a text does not begin like this."""
    for magic, what in _MAGIC.items():
        if head.startswith(magic):
            raise NotTextError(f"{what}, not text; convert it to text")


def _as_text(raw: Any, head: bytes) -> Any:
    raw.seek(0)
    refuse_binary(head)
    if mark := marked(head):
        return raw if mark == "utf-8-sig" else _as_utf_8(raw, Utf8Copy(), mark)
    copy = Utf8Copy(unmarked_utf_16(head))
    return _as_utf_8(raw, copy, copy.detected) if copy.detected else raw


class Utf8Copy(tempfile.SpooledTemporaryFile[bytes]):
    """A file as UTF-8. `detected`: its own encoding, where no mark states that."""

    def __init__(self, detected: str | None = None) -> None:
        super().__init__(max_size=MOST_BYTES)
        self.detected = detected


def _as_utf_8(raw: Any, made: Utf8Copy, encoding: str) -> Any:
    reader = codecs.getreader(encoding)(raw)
    try:
        for part in iter(lambda: reader.read(_HEAD_BYTES), ""):
            made.write(part.encode("utf-8", "surrogatepass"))
    except UnicodeError as error:
        raise NotTextError(f"damaged {encoding.upper()} ({error}); save it as UTF-8") from None
    made.seek(0)
    return _as_text(made, made.read(_HEAD_BYTES))
