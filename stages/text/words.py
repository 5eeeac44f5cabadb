"""Count and locate the words of a text.

Words are separated by white space. In scripts written without spaces every Chinese or Japanese
character counts as a word, and so do every four characters of Thai, Lao, Burmese and Khmer. A
session's header, the line `[...]` after a form feed, counts none: it is a date.
"""

import re

PAGE_BREAK = "\f"
_CHUNK = 1_000_000  # characters

# CHARACTERS: each counts as a word. _SYLLABLES: every four do.
CHARACTERS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
SYLLABLES = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_UNSPACED = re.compile(f"[{CHARACTERS}{SYLLABLES}]")
_WORD = re.compile(
    rf"[{CHARACTERS}][^\w\s]*|[{SYLLABLES}]{{1,4}}[^\w\s]*|[^\s{CHARACTERS}{SYLLABLES}]+"
)
_HEADER = re.compile(rf"{PAGE_BREAK}(\[[^\]\n]*\])\s*")


def num_words(text: str) -> int:
    """The number of words of `text`, session headers not counted."""
    if PAGE_BREAK in text:
        text = _HEADER.sub(" ", text)
    if text.isascii() or not _UNSPACED.search(text):
        return _spaced(text)
    return sum(1 for _ in _WORD.finditer(text))


def _spaced(text: str) -> int:
    """len(text.split()) without the list of all words: a document may have 100 MB."""
    total = 0
    for start in range(0, len(text), _CHUNK):
        total += len(text[start : start + _CHUNK].split())
        cut = start > 0 and not text[start].isspace() and not text[start - 1].isspace()
        total -= cut  # a word across the chunks' boundary was counted in both
    return total


def word_spans(text: str) -> list[tuple[int, int]]:
    """Half-open spans of the words in order; words of session headers are included."""
    return [match.span() for match in _WORD.finditer(text)]


def header_of(text: str) -> str | None:
    """The session header that `text` begins with, as `[...]`; None without one."""
    found = _HEADER.match(text)
    return found[1] if found else None


def without_header(text: str) -> str:
    """`text` without the session header it begins with."""
    found = _HEADER.match(text)
    return text[found.end() :] if found else text
