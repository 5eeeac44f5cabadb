"""Recognize replies that refuse the request, by the words of a prompt family."""

import re
from collections.abc import Iterator
from functools import cache
from itertools import takewhile

from pydantic import BaseModel, ConfigDict

_SENTENCE_END = re.compile(r"[.!?;:\n]")
_PART_END = re.compile(r"[.!?;:,(\n–]|\s-\s")
_NEAR = 8  # words: the most between a negation and the word it negates, or within a phrase


class Refusals(BaseModel):
    """Words of refusals, in small letters and without apostrophes; `*` in a phrase of `enough`
    stands for a few words.

    A reply refuses in three cases. A sentence has a word of `negations`, soon after it and before a
    comma one of `needed`, and after the negation none of `unless`. Or a part of a sentence has a
    phrase of `enough`, and beside the phrase no negation and no word of `open`. Or a part is one of
    `alone`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    negations: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    enough: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()

    def are_in(self, text: str) -> bool:
        """True if a text (of `plain_text`) refuses."""
        sentences = (_words(part) for part in _SENTENCE_END.split(text))
        parts = (_words(part) for part in _PART_END.split(text))
        return any(map(self._is_declined, sentences)) or any(map(self._is_enough, parts))

    def _is_declined(self, words: list[str]) -> bool:
        taken_back = max((n for n, word in enumerate(words) if word in self.unless), default=-1)
        return any(
            word in self.negations and not {*_near(words[n : n + _NEAR])}.isdisjoint(self.needed)
            for n, word in enumerate(words)
            if n > taken_back
        )

    def _is_enough(self, words: list[str]) -> bool:
        part = " ".join(words)
        found = (_pattern(phrase).search(part) for phrase in self.enough)
        beside = (_words(_beside(part, phrase)) for phrase in found if phrase)
        return part in self.alone or any(
            {*others}.isdisjoint({*self.negations, *self.open}) for others in beside
        )


def _words(text: str) -> list[str]:
    return re.findall(r"\w+|,", text.lower())


def _near(words: list[str]) -> Iterator[str]:
    return takewhile(lambda word: word != ",", words)


@cache
def _pattern(phrase: str) -> re.Pattern[str]:
    words = [re.escape(part.strip()) for part in phrase.split("*")]
    return re.compile(r"\b" + rf" ((?:\w+ ){{0,{_NEAR}}}?)".join(words) + r"\b")


def _beside(part: str, found: re.Match[str]) -> str:
    return " ".join([part[: found.start()], *found.groups(), part[found.end() :]])
