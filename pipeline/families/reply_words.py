"""The words of replies in a family's language: parsers know the English grammar alone."""

import re
from collections.abc import Mapping, Sequence
from functools import cache

from pipeline.core.refusals import Refusals
from pipeline.core.reply_forms import plain_text
from pipeline.families.chinese_numerals import with_digits

Words = Mapping[str, Sequence[str]]
"""English words of a prompt's grammar -> those of the family's language that stand for them."""
# Chinese and Japanese characters: no space shows where a word begins or ends.
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
_COLON = re.compile(r"[*_]*\s*[:：]\Z")  # after a label, which may be in bold


def in_english(text: str, words: Words) -> str:
    """A reply with the grammar's words in English; of words that begin alike the longest counts.
    Words that are all capitals stay so ("STOPP" is "STOP"). A word that ends with a full stop in
    English is a whole reply, with or without one; page numbers become digits where 第 is `page`."""
    whole = plain_text(text).rstrip(" .!。").lower()
    for word, many in words.items():
        if word.endswith(".") and whole in map(str.lower, many):
            return word
    if "第" in words.get("page", ()):
        text = with_digits(text)
    english = {_key(own): word for word, many in _inside(words) for own in many}
    return _replaced(text, tuple(english.items()))


def in_own_language(text: str, words: Words) -> str:
    """A constrained reply, or a regex of several, with the English words as the first of each."""
    return _replaced(text, tuple((_key(word), own[0]) for word, own in _inside(words) if word))


def _inside(words: Words) -> list[tuple[str, Sequence[str]]]:
    """The words that may stand anywhere in a reply."""
    return [(word, own) for word, own in words.items() if not word.endswith(".")]


def refusals_in_english(refusals: Refusals, words: Words) -> Refusals:
    """The words of refusals, for replies that are in English."""
    return Refusals(
        **{
            key: tuple(in_english(own, words).strip() for own in many)
            for key, many in refusals.model_dump().items()
        }
    )


def _key(word: str) -> str:
    return _COLON.sub(":", word.lower())


def _replaced(text: str, pairs: tuple[tuple[str, str], ...]) -> str:
    by = dict(pairs)
    return _pattern(pairs).sub(lambda found: _other(found, by), text) if pairs else text


def _other(found: re.Match[str], by: Mapping[str, str]) -> str:
    """The replacement of a match, set off by spaces where a Chinese or Japanese word was not."""
    word = by[_key(found[0])]
    word = word.upper() if found[0].isupper() and len(found[0]) > 1 else word
    if not _UNSPACED.search(found[0]):
        return word
    before, after = found.string[: found.start()][-1:], found.string[found.end() :][:1]
    return " " * before.isalnum() + word + " " * after.isalnum()


@cache
def _pattern(pairs: tuple[tuple[str, str], ...]) -> re.Pattern[str]:
    longest_first = sorted((word for word, _ in pairs), key=len, reverse=True)
    return re.compile("|".join(map(_bounded, longest_first)), re.IGNORECASE)


def _bounded(word: str) -> str:
    """A regex of the word on its own. In a regex of replies a word may follow a backslash and n."""
    stem, colon = word.removesuffix(":"), r"[*_]*\s*[:：]" if word.endswith(":") else ""
    before = r"(?:(?<![^\W_])|(?<=\\n))" if _is_spaced(stem[:1]) else ""
    after = r"(?![^\W_])" if _is_spaced(stem[-1:]) else ""
    return f"{before}{re.escape(stem)}{after}{colon}"


def _is_spaced(letter: str) -> bool:
    return letter.isalnum() and not _UNSPACED.match(letter)
