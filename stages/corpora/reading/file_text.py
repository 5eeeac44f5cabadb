"""The text of one file, whatever its kind: text of any encoding, Markdown, HTML, PDF, EPUB, Word;
gzip or not."""

import gzip
import io
import zlib
from collections.abc import Mapping
from dataclasses import replace

from upath import UPath

from stages.corpora.reading.folders import suffix_of
from stages.corpora.reading.opening import (
    NotTextError,
    encoding_of,
    read_whole,
    refuse_binary,
    up_to_most,
)
from stages.corpora.reading.row_checks import BadInputError, without_lone_surrogates
from stages.extract.extracted import Extracted, UnreadableError
from stages.extract.front_matter import without_front_matter
from stages.extract.isolated import Extractor

_KINDS: Mapping[str, str] = {
    ".txt": "text", **dict.fromkeys((".md", ".markdown"), "markdown"),
    **dict.fromkeys((".html", ".htm", ".xhtml"), "html"),
    ".pdf": "pdf", ".epub": "epub", ".docx": "docx",
}  # fmt: skip
SUFFIXES = tuple(_KINDS)
_GZIP = b"\x1f\x8b"
_HEAD_BYTES = 2**16


def text_of_file(file: UPath, extractor: Extractor) -> Extracted:
    """The text of a file by its suffix; one of another name is text. gzip is decompressed.

    Raises BadInputError where it has no text that can be read.
    """
    kind = _KINDS.get(suffix_of(file.name, SUFFIXES) or "", "text")
    try:
        content = read_whole(file)
        if kind in ("text", "markdown"):
            text = decoded(content)
            return without_front_matter(text) if kind == "markdown" else Extracted(text)
        content = unpacked(content)
        if kind == "html":
            refuse_binary(content[:_HEAD_BYTES])
        found = extractor.extract(kind, content)
        return replace(found, text=without_lone_surrogates(found.text))
    except UnreadableError as error:
        raise BadInputError(str(error)) from None
    except OSError as error:
        raise BadInputError(f"{error.strerror}; fix or delete it") from None


def decoded(content: bytes) -> str:
    """Decode a text file: UTF-16 or -32 with a byte order mark, UTF-8, or else Latin-1 (old
    Gutenberg).

    gzip is decompressed; lines end in a newline; byte order mark and NULs are removed. Raises
    BadInputError where the gzip is damaged or too large, or the file is no text.
    """
    try:
        content = unpacked(content)
        refuse_binary(content[:_HEAD_BYTES])
    except NotTextError as error:
        raise BadInputError(f"{error.strerror}; fix or delete it") from None
    try:
        text = content.decode(encoding_of(content) or "utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")


def unpacked(content: bytes) -> bytes:
    """The content of a gzip file, or of any other as it is.

    Raises BadInputError where the gzip is damaged, NotTextError where it is too large.
    """
    if not content.startswith(_GZIP):
        return content
    try:
        with gzip.open(io.BytesIO(content)) as packed:
            return up_to_most(packed)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        why = str(error).split("\n")[0]
        raise BadInputError(f"the gzip file is damaged ({why}); fetch it again") from None
