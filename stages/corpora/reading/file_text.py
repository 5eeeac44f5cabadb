"""The text of one file, whatever its kind: text of any encoding, Markdown, HTML, PDF, EPUB, Word;
gzip or not."""

import gzip
import io
import mimetypes
import zipfile
import zlib
from dataclasses import replace

from upath import UPath

from stages.corpora.reading.folders import suffix_of
from stages.corpora.reading.kept_texts import extracted_once
from stages.corpora.reading.opening import (
    NotTextError,
    read_whole,
    refuse_binary,
    up_to_most,
)
from stages.corpora.reading.row_checks import BadInputError, without_lone_surrogates
from stages.extract.extracted import EXTRACTORS, MOST_BYTES, TOO_LARGE, Extracted, UnreadableError
from stages.extract.front_matter import without_front_matter
from stages.extract.isolated import Extractor
from stages.text import encodings
from stages.text.encodings import Decoded

_TEXTS = (".txt", ".md", ".markdown")
_WEB = (".html", ".htm", ".xhtml")
_NO_TEXTS = ("image", "audio", "video", "font")
_GZIP = b"\x1f\x8b"
_HEAD_BYTES = 2**16


def suffixes() -> tuple[str, ...]:
    """The endings of files that can be read, those of plugins' extractors among them."""
    return (*_TEXTS, *(f".{ending}" for ending in EXTRACTORS))


def text_of_file(file: UPath, extractor: Extractor) -> Extracted:
    """The text of a file by its suffix; one of another name is text. gzip is decompressed.

    Raises BadInputError where it has no text that can be read.
    """
    suffix = suffix_of(file.name, suffixes()) or ".txt"
    try:
        is_folder = suffix == ".epub" and file.is_dir()
        content = _archived(file) if is_folder else read_whole(file)
        if suffix in _TEXTS:
            read = decoded(content)
            is_plain = suffix == ".txt"
            found = Extracted(read.text) if is_plain else without_front_matter(read.text)
            return replace(found, note=read.note)
        content = _unpacked(content)
        if suffix in _WEB:
            refuse_binary(content[:_HEAD_BYTES])
        found = extracted_once(suffix[1:], content, extractor)
        return replace(found, text=without_lone_surrogates(found.text))
    except UnreadableError as error:
        raise BadInputError(str(error)) from None
    except OSError as error:
        raise BadInputError(f"{error.strerror}; fix or delete it") from None


def _archived(folder: UPath) -> bytes:
    """A folder as a zip archive, the same for the same files; without pictures, sound and fonts."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for file in sorted(folder.rglob("*"), key=str):
            kind = (mimetypes.guess_type(file.name)[0] or "").partition("/")[0]
            if kind in _NO_TEXTS or file.is_dir():
                continue
            name = str(file).removeprefix(str(folder)).strip("/")
            archive.writestr(zipfile.ZipInfo(name), read_whole(file))
            if made.tell() > MOST_BYTES:
                raise NotTextError(TOO_LARGE)
    return made.getvalue()


def decoded(content: bytes) -> Decoded:
    """Decode a text file, gzip or not, of any encoding.

    Raises BadInputError where the gzip is damaged or too large, the file is no text, or its
    encoding cannot be told.
    """
    try:
        content = _unpacked(content)
        refuse_binary(content[:_HEAD_BYTES])
        return encodings.decoded(content)
    except NotTextError as error:
        raise BadInputError(f"{error.strerror}; fix or delete it") from None
    except UnicodeError:
        raise BadInputError("text of no known encoding; save it as UTF-8 or delete it") from None


def _unpacked(content: bytes) -> bytes:
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
