"""The tables of keys: items extracted from pages, keys, vectors, and the memory that clues come
from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.core.rows import Float32, IndexRow, Line, titled


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

    @classmethod
    def trace(cls, row: Mapping[str, Any]) -> Sequence[Line]:
        facts = ", ".join(filter(None, [row["kind"], row["day"], row["problem"]]))
        return [f"<Page {row['page_index']}> ({facts}) {row['text'] or '-'}"]

    @classmethod
    def trace_all(cls, rows: Sequence[Mapping[str, Any]]) -> Sequence[Line]:
        return titled(f"EXTRACTED ({len(rows)})", rows, cls.trace)


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

    @classmethod
    def trace_all(cls, rows: Sequence[Mapping[str, Any]]) -> Sequence[Line]:
        return titled(f"KEYS ({len(rows)})", rows, Expansion.trace)


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

    @classmethod
    def trace_all(cls, rows: Sequence[Mapping[str, Any]]) -> Sequence[Line]:
        return titled(f"MEMORY FOR CLUES ({len(rows)} passages)", rows, cls.trace)

    @classmethod
    def trace(cls, row: Mapping[str, Any]) -> Sequence[Line]:
        span = f"characters {row['start_char']} to {row['end_char']}"
        of = span if row["page_index"] is None else f"page {row['page_index']}"
        facts = [f"part {row['part_index']}", of, f"{row['num_words']} words", row["problem"]]
        text = "as it stands" if row["gist"] is None else row["gist"]
        return [f"<Passage {row['passage_index']}> ({', '.join(filter(None, facts))}) {text}"]
