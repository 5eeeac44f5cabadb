"""Pieces of the text in which the answer may be found (MemoRAG section 2: text evidence)."""

from dataclasses import dataclass
from typing import ClassVar

from stages.prompts.memorag.from_memory import LinesFromMemory, numbered
from stages.text.pieces import relevant_sentences

_NUM_SPANS, _SPAN_WORDS = 3, (8, 25)  # three of 25 words fit the budget


@dataclass(frozen=True)
class ClueSpans(LinesFromMemory):
    """Which pieces of the text (spans) may have the answer? The value: one a line, as recalled, so
    they need not stand in the text."""

    name: ClassVar[str] = "clue_spans"
    max_reply_tokens: ClassVar[int] = 128

    def extractive(self) -> str:
        """The three sentences that match the question and its options best."""
        return numbered(relevant_sentences(self.texts(), self.query(), _NUM_SPANS, _SPAN_WORDS))
