"""The table `keys`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pipeline.core.rows import IndexRow
from pipeline.core.trace_lines import Line, titled
from stages.tables.expansions import Expansion


@dataclass(frozen=True, slots=True, kw_only=True)
class Key(IndexRow):
    """A text that a page is found by. `kind`: value (its own text), merged, or that of an item that
    was extracted. `day`, as YYYY/MM/DD: of the event, else of the session."""

    table: ClassVar[str] = "keys"
    key: ClassVar[tuple[str, ...]] = ("document_id", "page_index", "key_index")
    once_per_memory: ClassVar[bool] = False  # several expansions of the same pages
    page_index: int  # of the page that is found by it
    key_index: int  # of the page's keys, from 0
    kind: str  # value (the page's own text), merged, or that of an item that was extracted
    text: str | None  # null: the page has no key
    day: str | None  # YYYY/MM/DD, of the event, else of the session

    @classmethod
    def trace(cls, row: Mapping[str, Any]) -> Sequence[Line]:
        return Expansion.trace(row)

    @classmethod
    def trace_all(cls, rows: Sequence[Mapping[str, Any]]) -> Sequence[Line]:
        return titled(f"KEYS ({len(rows)})", rows, cls.trace)
