"""Summarize one segment of a text (MemWalker appendix A.1.1, leaves)."""

from dataclasses import dataclass
from typing import ClassVar

from pipeline.core.prompts import Prompt
from stages.text.excerpts import gist

_SHARE = 0.15  # of a segment's words; the paper gives no length


@dataclass(frozen=True)
class SummarizeSegment(Prompt[str]):
    """Summarize one segment. The value is the summary, stripped."""

    name: ClassVar[str] = "summarize"
    max_reply_tokens: ClassVar[int] = 512
    is_whole: ClassVar[bool] = True
    assumed: ClassVar[str] = f"{100 * _SHARE:.0f}% of the segment"
    segment: str

    def extractive(self) -> str:
        return gist(self.segment)

    def expected(self) -> str:
        return self.segment[: max(1, round(_SHARE * len(self.segment)))]

    @classmethod
    def samples(cls) -> tuple["SummarizeSegment", ...]:
        return (cls("The bell {{ rings }}.\n\n{% twice %} <3>"),)
