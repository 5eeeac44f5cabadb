"""The table `notes`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pipeline.core.rows import QuestionRow
from pipeline.core.trace_lines import Line


@dataclass(frozen=True, slots=True, kw_only=True)
class Note(QuestionRow):
    """A note: what one page says about a question; a question for which no page was read has one
    row without a page."""

    table: ClassVar[str] = "notes"
    key: ClassVar[tuple[str, ...]] = ("question_id", "page_index")
    page_index: int | None  # of the page that was read; null: none was
    note: str | None  # "": nothing; null: no reply, or no page

    def why_unusable(self) -> str | None:
        """Only where there was no reply."""
        is_reply = self.problem in (None, "truncated", "unparseable")
        return None if is_reply else f"notes: {self.problem}"

    @classmethod
    def trace(cls, row: Mapping[str, Any]) -> Sequence[Line]:
        problem = f" ({row['problem']})" if row["problem"] else ""
        return [f"note on page {row['page_index']}{problem}: {row['note'] or '-'}"]
