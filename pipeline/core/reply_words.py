"""The words of replies in a family's language: parsers know the English grammar alone."""

import re
from collections.abc import Mapping, Sequence
from functools import cache

Words = Mapping[str, Sequence[str]]
"""English words of a prompt's grammar -> those of the family's language that stand for them."""
# Letters of writing without spaces, in which a word may begin and end anywhere.
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")


def in_english(text: str, words: Words) -> str:
    """A reply with the grammar's words in English; of words that begin alike the longest counts.
    Words that are all capitals stay so ("STOPP" is "STOP")."""
    english = {own.lower(): word for word, many in words.items() for own in many}
    return _replaced(text, tuple(english.items()))


def in_own_language(text: str, words: Words) -> str:
    """A constrained reply, or a regex of several, with the English words as the first of each."""
    return _replaced(text, tuple((word.lower(), own[0]) for word, own in words.items() if word))


def _replaced(text: str, pairs: tuple[tuple[str, str], ...]) -> str:
    return _pattern(pairs).sub(lambda found: _other(found[0], dict(pairs)), text) if pairs else text


def _other(found: str, by: Mapping[str, str]) -> str:
    word = by[found.lower()]
    word = word.upper() if found.isupper() and len(found) > 1 else word
    return f" {word} " if _UNSPACED.search(found) else word


@cache
def _pattern(pairs: tuple[tuple[str, str], ...]) -> re.Pattern[str]:
    longest_first = sorted((word for word, _ in pairs), key=len, reverse=True)
    return re.compile("|".join(map(_bounded, longest_first)), re.IGNORECASE)


def _bounded(word: str) -> str:
    """A regex of the word on its own. In a regex of replies a word may follow a backslash and n."""
    before = r"(?:(?<!\w)|(?<=\\n))" if word[0].isalnum() and not _UNSPACED.match(word[0]) else ""
    after = r"(?!\w)" if word[-1].isalnum() and not _UNSPACED.match(word[-1]) else ""
    return f"{before}{re.escape(word)}{after}"
