"""Words: how many a text has, and where they stand.

Whitespace-separated; in scripts without spaces between words every Chinese and Japanese character
is one, and every four characters of Thai, Lao, Burmese and Khmer. A session's header, the line
`[...]` after a form feed, has none: it is a date, not something to read.
"""

import re

PAGE_BREAK = "\f"
_CHUNK = 1_000_000  # characters

# A character a word; a few characters a word.
CHARACTERS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
SYLLABLES = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_UNSPACED = re.compile(f"[{CHARACTERS}{SYLLABLES}]")
_WORD = re.compile(
    rf"[{CHARACTERS}][^\w\s]*|[{SYLLABLES}]{{1,4}}[^\w\s]*|[^\s{CHARACTERS}{SYLLABLES}]+"
)
_HEADER = re.compile(rf"{PAGE_BREAK}(\[[^\]\n]*\])\s*")


def num_words(text: str) -> int:
    """The words of `text`, headers left out."""
    if PAGE_BREAK in text:
        text = _HEADER.sub(" ", text)
    if text.isascii() or not _UNSPACED.search(text):
        return _spaced(text)
    return sum(1 for _ in _WORD.finditer(text))


def _spaced(text: str) -> int:
    """As len(text.split()), without a list of all words: a document may have 100 MB."""
    total = 0
    for start in range(0, len(text), _CHUNK):
        total += len(text[start : start + _CHUNK].split())
        cut = start > 0 and not text[start].isspace() and not text[start - 1].isspace()
        total -= cut  # a word over the edge is counted on both sides
    return total


def word_spans(text: str) -> list[tuple[int, int]]:
    """Half-open spans of the words; those of headers are among them."""
    return [match.span() for match in _WORD.finditer(text)]


def header_of(text: str) -> str | None:
    """The header that `text` begins with, as `[...]`."""
    found = _HEADER.match(text)
    return found[1] if found else None


def without_header(text: str) -> str:
    """`text` without the header it begins with."""
    found = _HEADER.match(text)
    return text[found.end() :] if found else text
