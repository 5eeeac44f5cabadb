"""Cut the stories that NarrativeQA's script downloads, as text or HTML, to the story itself."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from stages.corpora.reading.document_files import decoded
from stages.text.article_text import article_text

_IS_PAGE = re.compile(r"\s*(?:<!--.*?-->\s*)*<(?:!doctype|html|head|body|pre|p|b|table|center)\b",
                      re.IGNORECASE | re.DOTALL)  # fmt: skip
# "Project Gutenberg" in the languages of its books, and what may stand before it in a line that
# begins or ends one: up to 60 characters of the same paragraph.
_GUTENBERG = r"\bPro[jgy]e[ckt]+o?s?[\s-]+Gutenberg"
_BEFORE = rf"(?:[^*\n]|\n(?![ \t]*\n)){{0,60}}?{_GUTENBERG}"
# The lines that end Project Gutenberg's head; a long title is wrapped, up to the closing stars.
_START = re.compile(
    rf"^[ \t*_]*(?:start|beginning|beginn?|anfang|d[ée]but|comienzo|in[ií][czg]io)\b{_BEFORE}"
    r"(?:(?:[^*\n]*\n(?![ \t]*\n)){0,4}?[^*\n]*\*{3}[^\n]*|[^\n]*)(?:\n|\Z)"
    r"|^\*+ ?END\*{0,2} ?THE SMALL PRINT[^\n]*(?:\n[^\n]*\*END\*[^\n]*)?\n"
    r'|^\["?Small Print"? V\.[^\n]*\n'
    rf"|^[ \t]*(?:To contact|Go to) {_GUTENBERG} (?:of )?Australia[^\n]*\n(?:[ \t]*http[^\n]*\n)?"
    r"|^[^\n]*\bgutenberg(?:2000|\.spiegel)\.de/? erreichbar[^\n]*\n",
    re.MULTILINE | re.IGNORECASE,
)
_MOST_OF_HEAD = 20_000  # characters from the first of these lines to the last: of a head in a head
_END = re.compile(
    rf"^[ \t*_]*(?:(?:this is )?the |here )?(?:ends?|ende|einde|fin|fine|fim)\b{_BEFORE}"
    r"|^[ \t*_]*End(?:e dieses| of (?:this|the)) (?:COPYRIGHTED )?E-?(?:text|book)"
    r"|^\*+This is a COPYRIGHTED Project Gutenberg"
    r"|^\*+ ?START: FULL LICENSE|^\*+START\*+ ?THE SMALL PRINT"
    r"|^[ \t]*Updated editions will replace the previous one"
    rf"|^[ \t]*(?:This site is full of FREE ebooks\b|{_GUTENBERG} (?:of )?Australia[ \t]*$)",
    re.MULTILINE | re.IGNORECASE,
)
# What is left of a head or licence. Credits are none: volunteers are named as in a printed book.
_LEFT = re.compile(
    rf"(?<!for ){_GUTENBERG}(?!\S*\s+(?:online|distributed|proofread|team|volunteer|also has))"
    r"|for the use of anyone anywhere|THE SMALL PRINT!",
    re.IGNORECASE,
)
_NOT_CUT = "Project Gutenberg's head or licence is left in the text; cut it from the file"
_EDGE_CHARS = 3000  # at the beginning and the end of a story, where that would stand
# The least share of words that a cut must leave: if it leaves less, the marker also occurs within
# the story. Project Gutenberg's licence makes up half of a short book.
_MIN_SHARE_OF_BOOK, _MIN_SHARE_BETWEEN = 0.1, 0.5


@dataclass(frozen=True, slots=True)
class Story:
    """`cut_by`: what it was cut out by, gutenberg, markers or nothing; `_in_part` after the first
    two: some of Project Gutenberg's head or licence is left. `note`: what is not certain of the
    text, and what to do."""

    text: str
    cut_by: str
    note: str | None


def story(content: bytes, start: str, end: str) -> Story:
    """Return the story in a file.

    `start` and `end` are the story_start and story_end of documents.csv: its first and last tokens,
    separated by spaces. In books of Project Gutenberg they include the licence, so the lines with
    which Gutenberg frames a book are tried first.
    """
    read = decoded(content)
    whole = article_text(read.text) if _IS_PAGE.match(read.text[:10_000]) else read.text
    text, cut_by = whole, "nothing"
    if (without := _by_gutenberg(whole)) is not None:
        text, cut_by = without, "gutenberg"
    elif (between := _by_markers(whole, start, end)) is not None:
        text, cut_by = between, "markers"
    if not any(map(_LEFT.search, (text[:_EDGE_CHARS], text[-_EDGE_CHARS:]))):
        return Story(text, cut_by, read.note)
    note = f"{read.note}; {_NOT_CUT}" if read.note else _NOT_CUT
    return Story(text, cut_by if text is whole else f"{cut_by}_in_part", note)


def _by_gutenberg(text: str) -> str | None:
    first = _START.search(text)
    last = _END.search(text, first.end() if first else len(text) // 2)
    if first is None and last is None:
        return None
    start, end = first.end() if first else 0, last.start() if last else len(text)
    for head in _START.finditer(text, start, min(end, start + _MOST_OF_HEAD)) if first else ():
        start = head.end()
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
