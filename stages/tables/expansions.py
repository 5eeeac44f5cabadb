"""The table `expansions`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pipeline.core.rows import IndexRow
from pipeline.core.trace_lines import Line, titled


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion(IndexRow):
    """One item that was extracted from a page; a page of which nothing was said has one row without
    a text. `kind`: summary, keyphrase, fact or event; none, where nothing was asked. `day`, as
    YYYY/MM/DD: of an event, else of the session."""

    table: ClassVar[str] = "expansions"
    key: ClassVar[tuple[str, ...]] = ("document_id", "page_index", "item_index")
    once_per_memory: ClassVar[bool] = False  # of several kinds
    page_index: int  # of the page
    item_index: int  # of the page's items, from 0
    kind: str  # summary, keyphrase, fact or event; none, where nothing was asked
    text: str | None  # the item; null: the page has none
    day: str | None = None  # YYYY/MM/DD, of an event, else of the session

    def why_unusable(self) -> str | None:
        """Only where there was no reply: after one that cannot be read the value is the key."""
        is_reply = self.problem in (None, "truncated", "unparseable", "empty_input")
        return None if is_reply else f"expand of page {self.page_index}: {self.problem}"

    @classmethod
    def trace(cls, row: Mapping[str, Any]) -> Sequence[Line]:
        facts = ", ".join(filter(None, [row["kind"], row["day"], row["problem"]]))
        return [f"<Page {row['page_index']}> ({facts}) {row['text'] or '-'}"]

    @classmethod
    def trace_all(cls, rows: Sequence[Mapping[str, Any]]) -> Sequence[Line]:
        return titled(f"EXTRACTED ({len(rows)})", rows, cls.trace)
