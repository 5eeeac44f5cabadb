"""The table `pages`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pipeline.core.rows import IndexRow
from pipeline.core.trace_lines import Line, RawText


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(IndexRow):
    """One page. Pages tile the document: joined in order, their texts are its text."""

    table: ClassVar[str] = "pages"
    key: ClassVar[tuple[str, ...]] = ("document_id", "page_index")
    drawn: ClassVar[bool] = True
    page_index: int  # of the document's pages, from 0
    start_char: int  # in the document's text
    end_char: int  # in the document's text
    text: str | None  # of the page; null: the document could not be cut
    num_words: int  # words of the page
    chosen_by: str | None  # what chose its end: model, rule, end (of the text) or fallback
    merged_from: tuple[int, ...] = ()  # page indexes of the memory that this one was made from

    @classmethod
    def trace(cls, row: Mapping[str, Any]) -> Sequence[Line]:
        facts = f"{row['num_words']} words, {row['problem'] or row['chosen_by']}"
        return [RawText(f"<Page {row['page_index']}> ({facts}) ", row["text"] or "-")]

    def why_unusable(self) -> str | None:
        """Only a page without text: where the call for its end failed, the fallback has text."""
        return f"paginate: {self.problem}" if self.text is None else None
