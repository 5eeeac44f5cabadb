"""The text of one file, whatever its kind: text, Markdown, HTML, PDF, EPUB, Word."""

from collections.abc import Mapping

from upath import UPath

from stages.corpora.reading.decoding import decoded, unpacked
from stages.corpora.reading.folders import suffix_of
from stages.corpora.reading.opening import read_whole, refuse_binary
from stages.corpora.reading.row_checks import BadInputError, without_lone_surrogates
from stages.extract.extracted import Extracted, UnreadableError
from stages.extract.isolated import Extractor

_KINDS: Mapping[str, str] = {
    **dict.fromkeys((".txt", ".md", ".markdown"), "text"),
    **dict.fromkeys((".html", ".htm", ".xhtml"), "html"),
    ".pdf": "pdf", ".epub": "epub", ".docx": "docx",
}  # fmt: skip
SUFFIXES = tuple(_KINDS)
_HEAD_BYTES = 2**16


def text_of_file(file: UPath, extractor: Extractor) -> Extracted:
    """The text of a file by its suffix; one of another name is text. gzip is decompressed.

    Raises BadInputError where it has no text that can be read.
    """
    kind = _KINDS.get(suffix_of(file.name, SUFFIXES) or "", "text")
    try:
        content = read_whole(file)
        if kind == "text":
            return Extracted(decoded(content))
        content = unpacked(content)
        if kind == "html":
            refuse_binary(content[:_HEAD_BYTES])
        found = extractor.extract(kind, content)
        return Extracted(without_lone_surrogates(found.text), found.missing)
    except UnreadableError as error:
        raise BadInputError(str(error)) from None
    except OSError as error:
        raise BadInputError(f"{error.strerror}; fix or delete it") from None
