"""Words of any language for scores, and the writing of a text. No model, no word lists.

Page sizes and compression count `words.num_words` instead: those words keep their punctuation.
"""

import unicodedata
from functools import lru_cache
from typing import Literal

import regex

from stages.text.words import CHARACTERS, SYLLABLES

Writing = Literal["latin", "spaced", "unspaced"]
_ALONE = rf"[[{CHARACTERS}{SYLLABLES}]&&[\p{{L}}\p{{N}}]]"
_WORD = regex.compile(rf"(?V1){_ALONE}\p{{M}}*|(?:(?!{_ALONE})[\p{{L}}\p{{M}}\p{{N}}])+")
_UNSPACED = regex.compile(rf"(?V1){_ALONE}")
_LATIN, _LETTER = regex.compile(r"\p{Latin}"), regex.compile(r"\p{L}")
_HAN, _KANA = regex.compile(r"\p{Han}"), regex.compile(r"[\p{Hiragana}\p{Katakana}]")


def unicode_words(text: str) -> list[str]:
    """Lower-case words without punctuation, after Unicode's NFKC.

    Runs of letters, marks and digits; in scripts without spaces every character with its marks.
    """
    return list(_WORD.findall(unicodedata.normalize("NFKC", text).lower()))


@lru_cache(maxsize=4096)  # the same references are read for every method
def writing_of(text: str) -> Writing:
    """The writing of most words of `text`: Latin letters (also for texts without letters),
    others with spaces between words (Cyrillic, Arabic, Korean ...), or without (Chinese, Thai
    ...)."""
    if text.isascii():
        return "latin"
    words = [word for word in unicode_words(text) if _LETTER.search(word)]
    num_latin = sum(1 for word in words if _LATIN.search(word))
    if 2 * num_latin >= len(words):
        return "latin"
    num_unspaced = sum(1 for word in words if _UNSPACED.search(word))
    return "unspaced" if 2 * num_unspaced > len(words) - num_latin else "spaced"


def is_chinese(text: str) -> bool:
    """True for Chinese characters without kana, which Japanese has."""
    return bool(_HAN.search(text)) and not _KANA.search(text)
