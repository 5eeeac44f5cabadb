"""The table `gists`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pipeline.core.rows import IndexRow, Record
from pipeline.core.trace_lines import Line, titled
from stages.tables.pages import Page


@dataclass(frozen=True, slots=True, kw_only=True)
class Gist(IndexRow):
    """The shortened text of one page. A truncated gist keeps its text."""

    table: ClassVar[str] = "gists"
    key: ClassVar[tuple[str, ...]] = ("document_id", "page_index")
    drawn: ClassVar[bool] = True
    shows: ClassVar[tuple[type[Record], ...]] = (Page,)
    page_index: int  # of the page
    gist: str | None  # the shortened text; null: there is none
    num_words: int  # words of the gist

    @classmethod
    def trace(cls, row: Mapping[str, Any]) -> Sequence[Line]:
        words = f"{row['page_words']} -> {row['num_words']} words"
        problem = f", {row['problem']}" if row["problem"] else ""
        return [f"<Page {row['page_index']}> ({words}{problem}) {row['gist'] or '-'}"]

    @classmethod
    def trace_all(cls, rows: Sequence[Mapping[str, Any]]) -> Sequence[Line]:
        return titled(f"GIST MEMORY ({len(rows)} pages)", rows, cls.trace)

    def why_unusable(self) -> str | None:
        return f"gist of page {self.page_index}: {self.problem}" if self.gist is None else None
