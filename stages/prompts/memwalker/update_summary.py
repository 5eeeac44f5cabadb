"""Carry a summary from one segment of a text to the next (MemWalker section 4, recurrence)."""

from dataclasses import dataclass
from typing import ClassVar

from pipeline.core.prompts import Prompt
from stages.prompts.parsing.passages import DATE, OPTIONS, QUESTION
from stages.text.excerpts import best_sentences, gist


@dataclass(frozen=True)
class UpdateSummary(Prompt[str]):
    """Rewrite the summary of the text before `segment` ("" for none) to include what the segment
    says about the question, or for a question "" about anything. The value is the new summary,
    stripped."""

    name: ClassVar[str] = "update_summary"
    max_reply_tokens: ClassVar[int] = 500
    is_whole: ClassVar[bool] = True
    assumed: ClassVar[str] = "as many words as are asked for"
    segment: str
    summary: str
    question: str
    options: tuple[str, ...]
    max_words: int
    asked_at: str = ""  # the date of the question, where it has one

    def extractive(self) -> str:
        """The sentences of both that match the question best; else what there was, or a gist."""
        if not self.question:
            return gist(" ".join([self.summary, self.segment])) or self.summary
        query = " ".join([self.question, *self.options])
        words = max(1, 9 * self.max_words // 10)  # what it takes may be a tenth longer
        found = best_sentences([self.summary, self.segment], query, words)
        return found or self.summary or gist(self.segment)

    def expected(self) -> str:
        words = f"{self.summary} {self.segment}".split()
        return " ".join(words[: max(1, self.max_words)])

    @classmethod
    def samples(cls) -> tuple["UpdateSummary", ...]:
        segment, summary = "The bell {{ rings }}.\n\n{% twice %} <3>", "A village {# wakes #} up."
        return (
            cls(segment, summary, QUESTION, (), max_words=8104),
            cls(segment, "", QUESTION, OPTIONS, max_words=8104),
            cls(segment, summary, QUESTION, OPTIONS, max_words=8104, asked_at=DATE),
            cls(segment, summary, "", (), max_words=8104),
        )
