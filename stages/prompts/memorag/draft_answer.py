"""A provisional answer from the memory, to search the text for (MemoRAG section 2)."""

from dataclasses import dataclass
from typing import ClassVar

from stages.prompts.memorag.from_memory import FromMemory
from stages.text.excerpts import best_sentences
from stages.text.pieces import spread_pieces

_WORDS = 30


@dataclass(frozen=True)
class DraftAnswer(FromMemory[str]):
    """Answer in brief from what is remembered, even if details may be wrong. The value is the
    text, stripped, also of a question with options."""

    name: ClassVar[str] = "draft_answer"
    max_reply_tokens: ClassVar[int] = 128
    assumed: ClassVar[str] = f"{_WORDS} words"

    def extractive(self) -> str:
        """The sentences that match the question and its options best."""
        return best_sentences(self.texts(), self.query(), _WORDS) or "Nothing was read."

    def expected(self) -> str:
        """Words from the end of the text."""
        return " ".join(spread_pieces(self.texts(), 64, _WORDS)[-1:]) or "answer " * _WORDS
