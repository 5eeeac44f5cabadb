"""Statements of users about themselves in a chat, keys to find it by (LongMemEval section 5.3,
figure 11)."""

import re
from dataclasses import dataclass
from typing import ClassVar

from stages.prompts.longmemeval.chat_fields import (
    TYPICAL_ITEMS,
    OfChatByExample,
    as_json,
    shortened,
    stored,
    typical_items,
    user_sentences,
)
from stages.prompts.parsing.json_replies import list_items

_OF_THE_USER = re.compile(r"\b(?:I|[Mm]e|[Mm]y|[Mm]ine|[Ww]e|[Oo]ur|us)\b")
_MOST_EXTRACTED = 40  # so many sentences of thirty words fit the budget


@dataclass(frozen=True)
class ExtractFacts(OfChatByExample[tuple[str, ...]]):
    """Ask what users state about themselves. The value: a fact each; () for none, which is
    legal."""

    name: ClassVar[str] = "extract_facts"
    max_reply_tokens: ClassVar[int] = 2000
    assumed: ClassVar[str] = TYPICAL_ITEMS

    def read(self, reply: str, is_cut: bool) -> tuple[str, ...] | None:
        """The strings of the JSON list, those before the cut in a cut one. Items that are blank or
        no strings are left out; None where a list has no others, or cannot be read."""
        items = list_items(reply, is_cut)
        if items is None:
            return None
        texts = (stored(item) for item in items if isinstance(item, str))
        return tuple(text for text in texts if text) or (None if items else ())

    def extractive(self) -> str:
        """The user's sentences with "I", "my" and the like."""
        facts = [text for text in user_sentences(self.chat) if _OF_THE_USER.search(text)]
        return as_json(map(shortened, facts[:_MOST_EXTRACTED]))

    def expected(self) -> str:
        return as_json(text for text in typical_items(self.chat) if text)
