"""The table `memory_passages`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pipeline.core.rows import IndexRow
from pipeline.core.trace_lines import Line, titled


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPassage(IndexRow):
    """A passage of a document's memory: a span of its text, or the gist of a page. Passages with
    the same `part_index` are shown together, in order; each part is asked by itself."""

    table: ClassVar[str] = "memory_passages"
    key: ClassVar[tuple[str, ...]] = ("document_id", "passage_index")
    has_pages: ClassVar[bool] = False
    once_per_memory: ClassVar[bool] = False  # several kinds of memories of the same pages
    passage_index: int  # of the document's passages, from 0
    part_index: int  # of the part that it is shown with
    page_index: int | None  # of a gist
    start_char: int | None  # of the text
    end_char: int | None  # of the text
    gist: str | None  # null: the text is shown as it stands
    num_words: int  # of the gist, or of the text

    def why_unusable(self) -> str | None:
        """A gist without a word is no failure: it is shown as it is."""
        is_read = self.problem in (None, "truncated", "unparseable", "empty_input")
        return None if is_read else f"memorize: {self.detail or self.problem}"

    @classmethod
    def trace_all(cls, rows: Sequence[Mapping[str, Any]]) -> Sequence[Line]:
        return titled(f"MEMORY FOR CLUES ({len(rows)} passages)", rows, cls.trace)

    @classmethod
    def trace(cls, row: Mapping[str, Any]) -> Sequence[Line]:
        of = f"characters {row['start_char']} to {row['end_char']}"
        of = of if row["page_index"] is None else f"page {row['page_index']}"
        facts = [f"part {row['part_index']}", of, f"{row['num_words']} words", row["problem"]]
        text = "as it stands" if row["gist"] is None else row["gist"]
        return [f"<Passage {row['passage_index']}> ({', '.join(filter(None, facts))}) {text}"]
