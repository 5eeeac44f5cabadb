"""Cut the stories that NarrativeQA's script downloads, as text or HTML, to the story itself."""

import re
from collections.abc import Iterator

from stages.corpora.reading.file_text import decoded
from stages.text.article_text import article_text

_IS_PAGE = re.compile(r"\s*(?:<!--.*?-->\s*)*<(?:!doctype|html|head|body|pre|p|b|table|center)\b",
                      re.IGNORECASE | re.DOTALL)  # fmt: skip
# The lines with which Project Gutenberg frames a book; a long title may be wrapped.
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
# The least share of words that a cut must leave: if it leaves less, the marker also occurs within
# the story. Project Gutenberg's licence makes up half of a short book.
_MIN_SHARE_OF_BOOK, _MIN_SHARE_BETWEEN = 0.1, 0.5


def story(content: bytes, start: str, end: str) -> tuple[str, str]:
    """Return the story in a file, and how it was cut out: gutenberg, markers or nothing.

    `start` and `end` are the story_start and story_end of documents.csv: its first and last tokens,
    separated by spaces. In books of Project Gutenberg they include the licence, so the lines with
    which Gutenberg frames a book are tried first.
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
    return _kept(text, start, end, _MIN_SHARE_OF_BOOK)


def _by_markers(text: str, start: str, end: str) -> str | None:
    """From the first `start` to the last `end`; either may be missing."""
    first = next(_found(text, start), None)
    *_, last = [None, *_found(text, end)]
    if first is None and last is None:
        return None
    start_char, end_char = first.start() if first else 0, last.end() if last else len(text)
    return _kept(text, start_char, end_char, _MIN_SHARE_BETWEEN)


def _found(text: str, marker: str) -> Iterator[re.Match[str]]:
    """Where the marker's tokens occur, with or without white space between them."""
    tokens = marker.split()
    return iter(re.finditer(r"\s*".join(map(re.escape, tokens)), text) if tokens else ())


def _kept(text: str, start: int, end: int, least: float) -> str | None:
    """`text[start:end]`, stripped; None where it has under `least` (a share) of all words."""
    between = text[start:end].strip()
    enough = len(between.split()) >= least * len(text.split())
    return between if enough else None
