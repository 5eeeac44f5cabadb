"""Shared by the prompts that extract from a chat of a user with an assistant (LongMemEval section
5.3, appendix D): its fields, and what the user says in it."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Self, TypeVar

from pipeline.core.prompts import Prompt
from stages.prompts.parsing.passages import DATE
from stages.text.excerpts import best_clauses, sentences
from stages.text.words import PAGE_BREAK, num_words, without_header

T = TypeVar("T")
_NEXT_TURN = re.compile(r"\n\n(?=(?:user|assistant|system):)")
_ROLE = re.compile(r"(?:user|assistant|system):\s*")
_LEAST_WORDS, _MOST_WORDS = 3, 30  # of a sentence that is taken over; of a longer one its clauses
# Typical is an item of twelve words for each hundred words of chat: our assumption.
_WORDS_AN_ITEM, _ITEM_WORDS = 100, 12
TYPICAL_ITEMS = f"an item of {_ITEM_WORDS} words per {_WORDS_AN_ITEM} words of chat"
_SURROGATE = re.compile(r"[\ud800-\udfff]")
# A sample value.
CHAT = (
    "user: I moved to {{ Bern }} on 2023/05/02. <3> Any tips?\n\n"
    "assistant: {% Welcome %}, try my \\n favourite café.\n\nuser: My cat {# Max #} is 3."
)


@dataclass(frozen=True)
class OfChat(Prompt[T], Generic[T]):
    """Base class: a session or a round of it, or the user's side alone.

    `chat`: its turns as paragraphs, `user: ...`. `said_at`: the date of the session, "" without.
    """

    is_whole: ClassVar[bool] = False  # a key made of a cut reply still finds its chat
    chat: str
    said_at: str

    @classmethod
    def samples(cls) -> tuple[Self, ...]:
        return cls(CHAT, DATE), cls(CHAT, ""), cls("I rang the bell today.", "")


@dataclass(frozen=True)
class OfChatByExample(OfChat[T], Generic[T]):
    """Base class: what the authors extract with ten examples of replies (appendix D)."""

    with_examples: bool = False  # whether the prompt has ten, of our own

    @classmethod
    def samples(cls) -> tuple[Self, ...]:
        return cls(CHAT, DATE), cls(CHAT, ""), cls("I rang the bell today.", "", with_examples=True)


def typical_items(chat: str) -> list[str]:
    """Twelve words for each hundred of the chat, at least once, from its beginning on."""
    words = chat.split()
    starts = range(0, max(1, len(words)), _WORDS_AN_ITEM)
    return [" ".join(words[start : start + _ITEM_WORDS]) for start in starts]


def user_sentences(chat: str) -> list[str]:
    """The user's statements, a sentence each, none twice: of three words or more, no questions. All
    of it where no turn is marked as the user's."""
    turns = _NEXT_TURN.split(without_header(PAGE_BREAK + chat.strip()).strip())
    own = [turn for turn in turns if turn.startswith("user:")] or turns
    found = [s.text for turn in own for s in sentences(_ROLE.sub("", turn, count=1))]
    stated = [text for text in found if not text.endswith(("?", "？"))]
    return list(dict.fromkeys(text for text in stated if num_words(text) >= _LEAST_WORDS))


def shortened(text: str) -> str:
    """At most thirty words of a sentence."""
    return best_clauses(text, "", _MOST_WORDS)


def stored(text: str) -> str:
    """A string of a reply in one line, without what UTF-8 cannot store: JSON can escape half of a
    surrogate pair."""
    return " ".join(_SURROGATE.sub("\ufffd", text).split())


def as_json(items: Iterable[Any]) -> str:
    """A reply that is a list, an item per line."""
    rows = [json.dumps(item, ensure_ascii=False) for item in items]
    return "[\n" + ",\n".join(rows) + "\n]" if rows else "[]"
