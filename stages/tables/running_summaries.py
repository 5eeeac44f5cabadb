"""The table `running_summaries`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pipeline.core.rows import QuestionRow
from pipeline.core.trace_lines import Line


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningSummary(QuestionRow):
    """A running summary: the notes for one question after one segment of the document.

    With a problem other than truncated, the segment added nothing: the summary is the one before.
    """

    table: ClassVar[str] = "running_summaries"
    key: ClassVar[tuple[str, ...]] = ("question_id", "segment_index")
    has_pages: ClassVar[bool] = False
    segment_index: int  # of the document's segments, from 0
    start_char: int  # of the segment, in the document's text
    end_char: int  # of the segment, in the document's text
    summary: str | None  # null: no segment so far gave one
    num_words: int = 0  # of the summary

    def why_unusable(self) -> str | None:
        """The reason why nothing is known after this segment; None where something is."""
        return f"{self.table}: {self.problem}" if self.summary is None else None

    @classmethod
    def trace(cls, row: Mapping[str, Any]) -> Sequence[Line]:
        problem = f", {row['problem']}" if row["problem"] else ""
        span = f"characters {row['start_char']}-{row['end_char']}"
        words = f"{row['num_words']} words{problem}"
        return [f"segment {row['segment_index']} ({span}) -> {words}: {row['summary'] or '-'}"]
