"""The tables made by reading a document: pages, gists, the nodes of a tree, and the running
summaries of a question."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.core.rows import IndexRow, Line, QuestionRow, RawText, titled


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(IndexRow):
    """One page. Pages tile the document: joined in order, their texts are its text."""

    table = "pages"
    key = ("document_id", "page_index")
    drawn = True
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
        """Only for a page without text: the fallback after a failed call has text."""
        return f"paginate: {self.problem}" if self.text is None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gist(IndexRow):
    """The shortened text of one page. A truncated gist keeps its text."""

    table = "gists"
    key = ("document_id", "page_index")
    drawn = True
    shows = (Page,)
    page_index: int  # of the page
    gist: str | None  # the shortened text; null: there is none
    num_words: int  # words of the gist
    copied: float | None = None  # share of the page's words that it has in order; null: no gist

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Node(IndexRow):
    """A node of a document's tree; a tree's nodes are numbered level by level, leaves first."""

    table = "nodes"
    key = ("document_id", "node_index")
    drawn = True
    once_per_memory = False  # trees of several shapes rest on the same segments
    node_index: int  # of the tree's nodes, level by level, leaves first
    level: int  # of leaves 0
    parent: int | None  # node index; null: the root
    children: tuple[int, ...]  # node indexes, in document order
    start_char: int  # of the text below it, in the document's text
    end_char: int  # of the text below it, in the document's text
    page_index: int | None  # of a leaf: its segment
    summary: str | None  # what a navigator is shown; null: there is none
    num_words: int  # of the summary
    is_compressed: bool = False  # whether the children's summaries were too long together

    def why_unusable(self) -> str | None:
        """Only for a root without a word below it; rows of version 0.2 have `upstream` there."""
        lost = ("upstream", "unit_failed", "empty_input")
        is_lost = self.parent is None and self.problem in lost
        return f"tree: {self.detail or self.problem}" if is_lost else None

    @classmethod
    def trace(cls, row: Mapping[str, Any]) -> Sequence[Line]:
        of = f"of {row['children']}" if row["children"] else f"of segment {row['page_index']}"
        facts = [of, f"{row['num_words']} words", row["problem"], row["detail"]]
        return [f"<Node {row['node_index']}> ({', '.join(filter(None, facts))}) "
                f"{row['summary'] or '-'}"]  # fmt: skip

    @classmethod
    def trace_all(cls, rows: Sequence[Mapping[str, Any]]) -> Sequence[Line]:
        """From the root down."""
        top_down = sorted(rows, key=lambda row: (-row["level"], row["node_index"]))
        return titled(f"TREE ({len(rows)} nodes)", top_down, cls.trace)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningSummary(QuestionRow):
    """A running summary: the notes for one question after one segment of the document.

    With a problem other than truncated, the segment added nothing: the summary is the one before.
    """

    table = "running_summaries"
    key = ("question_id", "segment_index")
    has_pages = False
    segment_index: int  # of the document's segments, from 0
    start_char: int  # of the segment, in the document's text
    end_char: int  # of the segment, in the document's text
    summary: str | None  # null: no segment so far gave one
    num_words: int = 0  # of the summary

    def why_unusable(self) -> str | None:
        """The reason why no summary is known after this segment; None where one is."""
        return f"{self.table}: {self.problem}" if self.summary is None else None

    @classmethod
    def trace(cls, row: Mapping[str, Any]) -> Sequence[Line]:
        problem = f", {row['problem']}" if row["problem"] else ""
        span = f"characters {row['start_char']}-{row['end_char']}"
        words = f"{row['num_words']} words{problem}"
        return [f"segment {row['segment_index']} ({span}) -> {words}: {row['summary'] or '-'}"]
