"""The tables made by reading a document: pages, gists, the nodes of a tree, a question's running
summaries; items extracted from pages, keys, vectors; and the memory that clues come from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.core.rows import Float32, IndexRow, Line, QuestionRow, RawText


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
        return f"{self.table}: {self.problem}" if self.summary is None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion(IndexRow):
    """One item that was extracted from a page; a page from which nothing was extracted has one row
    without a text."""

    table = "expansions"
    key = ("document_id", "page_index", "item_index")
    once_per_memory = False  # of several kinds
    page_index: int  # of the page
    item_index: int  # of the page's items, from 0
    kind: str  # summary, keyphrase, fact or event; none, where nothing was asked
    text: str | None  # the item; null: the page has none
    day: str | None = None  # YYYY/MM/DD, of an event, else of the session

    def why_unusable(self) -> str | None:
        """Only without a reply: after an unreadable one the value is the key."""
        is_reply = self.problem in (None, "truncated", "unparseable", "empty_input")
        return None if is_reply else f"expand of page {self.page_index}: {self.problem}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Key(IndexRow):
    """A text that a page is found by."""

    table = "keys"
    key = ("document_id", "page_index", "key_index")
    once_per_memory = False  # several expansions of the same pages
    page_index: int  # of the page that is found by it
    key_index: int  # of the page's keys, from 0
    kind: str  # value (the page's own text), merged, or the kind of the item that was extracted
    text: str | None  # null: the page has no key
    day: str | None  # YYYY/MM/DD, of the event, else of the session


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedding(IndexRow):
    """The unit-length vector of one chunk of a page's text or of its gist, or of one of its keys.

    The span refers to the embedded text, not to the document's.
    """

    table = "embeddings"
    key = ("document_id", "page_index", "chunk_index")
    once_per_memory = False  # of pages and of gists
    page_index: int  # of the page that is found by it
    chunk_index: int  # of the page's chunks, or keys
    start_char: int  # of the embedded text
    end_char: int  # of the embedded text
    embedding: tuple[Float32, ...] | None  # of length 1; null: there was nothing to embed

    @classmethod
    def trace_all(cls, rows: Sequence[Mapping[str, Any]]) -> Sequence[Line]:
        """Nothing: vectors are not readable."""
        return []

    def why_unusable(self) -> str | None:
        """A page without words is no failure: it is never retrieved."""
        if self.problem in (None, "empty_input"):
            return None
        return f"embed of page {self.page_index}: {self.problem}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPassage(IndexRow):
    """A passage of a document's memory: a span of its text, or the gist of a page. Passages with
    the same `part_index` are shown together, in order; each part is asked by itself."""

    table = "memory_passages"
    key = ("document_id", "passage_index")
    has_pages = False
    once_per_memory = False  # several kinds of memories of the same pages
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
