"""The key points of a text, to search it for what a summary of it needs (MemoRAG section 2)."""

from dataclasses import dataclass
from typing import ClassVar, Self

from stages.prompts.memorag.from_memory import LinesFromMemory, numbered
from stages.prompts.parsing.passages import MEMORY
from stages.text.pieces import central_sentences

_NUM_POINTS, _POINT_WORDS = 8, (12, 40)  # eight of 40 words fit the budget


@dataclass(frozen=True)
class KeyPoints(LinesFromMemory):
    """Ask for the key points of the text. The value: one a line. `question` is how a summary is
    asked for, "" where it goes without saying."""

    name: ClassVar[str] = "key_points"
    max_reply_tokens: ClassVar[int] = 512

    def extractive(self) -> str:
        """The most central sentence of each eighth of the text."""
        return numbered(central_sentences(self.texts(), _NUM_POINTS, _POINT_WORDS))

    @classmethod
    def samples(cls) -> tuple[Self, ...]:
        return (*super().samples(), cls(MEMORY, "", ()))
