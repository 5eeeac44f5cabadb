"""Story files as NarrativeQA's script fetched them: text or HTML, gzip or not, in any encoding."""

import codecs
import gzip
import re
import zlib
from collections.abc import Iterator

from stages.corpora.article_text import article_text
from stages.corpora.checks import BadInputError

_GZIP = b"\x1f\x8b"
_IS_PAGE = re.compile(r"\s*(?:<!--.*?-->\s*)*<(?:!doctype|html|head|body|pre|p|b|table|center)\b",
                      re.IGNORECASE | re.DOTALL)  # fmt: skip
# Project Gutenberg's own marks; a title may be long enough to be wrapped.
_START = re.compile(
    r"^[ \t]*\*{3} ?START OF (?:THE|THIS) PROJECT GUTENBERG E(?:BOOK|TEXT)[^*]*\*{3}[^\n]*\n"
    r"|^\*END\*? ?THE SMALL PRINT![^\n]*\*END\*[^\n]*\n",
    re.MULTILINE | re.IGNORECASE,
)
_END = re.compile(
    r"^[ \t]*(?:\*{3} ?END OF (?:THE|THIS) PROJECT GUTENBERG"
    r"|End of (?:the )?Project Gutenberg(?:'s)?\b)",
    re.MULTILINE | re.IGNORECASE,
)
# Of the words, at least; a mark that would take more stands elsewhere too. The licence alone is
# half of a short book.
_LEAST_OF_BOOK, _LEAST_BETWEEN = 0.1, 0.5


def decoded(content: bytes) -> str:
    """The text of a file: UTF-8, or UTF-16 if it says so, or else Latin-1 (older Gutenberg).

    gzip is unpacked; lines end in a newline; byte order mark and NULs are dropped. Raises
    BadInputError where gzip is damaged.
    """
    if content.startswith(_GZIP):
        try:
            content = gzip.decompress(content)
        except (EOFError, OSError, zlib.error) as error:
            why = str(error).split("\n")[0]
            raise BadInputError(f"the gzip file is damaged ({why}); fetch it again") from None
    utf_16 = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = content.decode("utf-16" if utf_16 else "utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")


def story(content: bytes, start: str, end: str) -> tuple[str, str]:
    """The story in a file, and what it was cut by: gutenberg, markers or nothing.

    `start` and `end` are the story_start and story_end of documents.csv, words and punctuation
    apart. By them a book of Project Gutenberg ends after its licence, so its own marks come first.
    """
    text = decoded(content)
    if _IS_PAGE.match(text[:10_000]):
        text = article_text(text)
    without = _by_gutenberg(text)
    if without is not None:
        return without, "gutenberg"
    between = _by_markers(text, start, end)
    return (text, "nothing") if between is None else (between, "markers")


def _by_gutenberg(text: str) -> str | None:
    first = _START.search(text)
    last = _END.search(text, first.end() if first else len(text) // 2)
    if first is None and last is None:
        return None
    start, end = first.end() if first else 0, last.start() if last else len(text)
    return _kept(text, start, end, _LEAST_OF_BOOK)


def _by_markers(text: str, start: str, end: str) -> str | None:
    """From the first `start` to the last `end`; either may be missing."""
    first = next(_found(text, start), None)
    *_, last = [None, *_found(text, end)]
    if first is None and last is None:
        return None
    start_char, end_char = first.start() if first else 0, last.end() if last else len(text)
    return _kept(text, start_char, end_char, _LEAST_BETWEEN)


def _found(text: str, marker: str) -> Iterator[re.Match[str]]:
    """Where the marker's tokens stand, with or without white space between them."""
    tokens = marker.split()
    return iter(re.finditer(r"\s*".join(map(re.escape, tokens)), text) if tokens else ())


def _kept(text: str, start: int, end: int, least: float) -> str | None:
    """What is between, unless that is too little to be the story."""
    between = text[start:end].strip()
    enough = len(between.split()) >= least * len(text.split())
    return between if enough else None
