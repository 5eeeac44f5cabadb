"""A note on one retrieved chat (LongMemEval section 5.5, Chain-of-Note with a call per item)."""

import re
from dataclasses import dataclass
from typing import ClassVar

from stages.prompts.longmemeval.chat_fields import CHAT, OfChat
from stages.prompts.parsing.passages import DATE, QUESTION
from stages.text.excerpts import best_sentences
from stages.text.ranking import terms

NOTHING = "empty"  # the authors' word
_WORDS = 60
_EMPTY = re.compile(r"\W*(?:notes?\b\W*)?(?:empty|none|n/a)\W*", re.IGNORECASE)


@dataclass(frozen=True)
class NoteOnChat(OfChat[str]):
    """Ask what the chat says about the question. The value is the note, stripped; "" where it has
    nothing on it."""

    name: ClassVar[str] = "note"
    max_reply_tokens: ClassVar[int] = 500
    is_whole: ClassVar[bool] = True  # it is all that the reader sees of the chat
    assumed: ClassVar[str] = f"{_WORDS} words"
    question: str
    asked_at: str = ""  # the date of the question, where it has one

    def read(self, reply: str, is_cut: bool) -> str | None:
        """Any text, or "" for `empty` and nothing else; None for no reply."""
        text = reply.strip()
        return "" if _EMPTY.fullmatch(text) else text or None

    def extractive(self) -> str:
        """The sentences that match the question best, if one shares a term with it."""
        shared = set(terms(self.chat)) & set(terms(self.question))
        return (best_sentences([self.chat], self.question, _WORDS) if shared else "") or NOTHING

    def expected(self) -> str:
        return " ".join(self.chat.split()[:_WORDS]) or NOTHING

    @classmethod
    def samples(cls) -> tuple["NoteOnChat", ...]:
        return (
            cls(CHAT, DATE, QUESTION, "2023/06/01 (Thu) 08:15"),
            cls(CHAT, "", QUESTION),
            cls("I rang the bell.", "", QUESTION, DATE),
        )
