"""The table `embeddings`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pipeline.core.rows import Float32, IndexRow
from pipeline.core.trace_lines import Line


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedding(IndexRow):
    """The unit-length vector of one chunk of a page's text or of its gist, or of one of its keys.

    The span refers to the embedded text, not to the document's.
    """

    table: ClassVar[str] = "embeddings"
    key: ClassVar[tuple[str, ...]] = ("document_id", "page_index", "chunk_index")
    once_per_memory: ClassVar[bool] = False  # of pages and of gists
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
        """None for a page without words, too, as it is never retrieved, which is no failure."""
        if self.problem in (None, "empty_input"):
            return None
        return f"embed of page {self.page_index}: {self.problem}"
