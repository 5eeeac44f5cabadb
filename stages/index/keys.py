"""Keys: the texts that a session or round of a chat is found by (LongMemEval section 5.3)."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from pipeline.ask import Ask
from pipeline.errors import Problem
from pipeline.rows import IndexRow, Record, UnitRows
from pipeline.stage import Stage
from pipeline.trace_lines import Line, titled
from stages.index.expand import Expansion, Side, refuse_page_gaps, side_of
from stages.index.paginate import Page
from stages.text.chats import session_dates
from stages.text.dates import day_of

Join = Literal["separate", "merge", "replace", "merge_as_published"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Key(IndexRow):
    """A text that a page is found by. `kind`: value (its own text), merged, or that of an item that
    was extracted. `day`, as YYYY/MM/DD: of the event, else of the session."""

    table: ClassVar[str] = "keys"
    key: ClassVar[tuple[str, ...]] = ("document_id", "page_index", "key_index")
    once_per_memory: ClassVar[bool] = False  # several expansions of the same pages
    sizes: ClassVar[str | None] = """
        select memory, 'keys per page' as measure, 'pages' as rows_of, 90 as place,
          count(text)::double as value
        from keys group by memory, step_id, document_id, page_index"""
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


class MakeKeys(Stage):
    """`join`: separate, the value and each item that was extracted are keys; merge, one key with
    the items before the value; replace, the items alone; where there are none the value is the key.
    merge_as_published as merge, but where there are none the page has no key: so the authors' code
    loses it from the index. `side`: the turns of the value, the user's in the paper. No calls.
    """

    name: ClassVar[str] = "keys"
    version: ClassVar[int] = 1
    reads: ClassVar[tuple[type[Record], ...]] = (Page, Expansion)
    writes: ClassVar[type[Record]] = Key
    join: Join
    side: Side

    async def run(self, rows: UnitRows, ask: Ask) -> list[Key]:
        """Pages, and what was extracted from them -> their Keys, in page order."""
        of_pages: dict[int, list[Expansion]] = defaultdict(list)
        for row in rows[Expansion]:
            of_pages[row.page_index] += [row] if row.text is not None else []
        dates = session_dates([page.text or "" for page in rows[Page]])
        made: list[Key] = []
        for page, date in zip(rows[Page], dates, strict=True):
            value = _key(page, side_of(page, self.side), day_of(date) or None)
            keys = self._joined(value, of_pages[page.page_index])
            made += [replace(key, key_index=index) for index, key in enumerate(keys)]
        return made

    def _joined(self, value: Key, found: Sequence[Expansion]) -> list[Key]:
        items = [replace(value, kind=row.kind, text=row.text, day=row.day) for row in found]
        if self.join == "separate":
            return [value, *items]
        if not items:
            return [replace(value, text=None) if self.join == "merge_as_published" else value]
        if self.join == "replace":
            return items
        text = " ".join([*(item.text or "" for item in items), value.text or ""])
        return [replace(value, kind="merged", text=text)]

    def failed(self, rows: UnitRows, problem: Problem, detail: str | None) -> list[Key]:
        return [
            replace(_key(page, None, None), problem=problem, detail=detail) for page in rows[Page]
        ]

    def check(self, rows: UnitRows, made: Sequence[Record]) -> None:
        """Raise AccountingError unless every page has keys, numbered from 0, in page order."""
        numbers = [(row.page_index, row.key_index) for row in made if isinstance(row, Key)]
        refuse_page_gaps(rows, numbers, "keys")


def _key(page: Page, text: str | None, day: str | None) -> Key:
    return Key(
        document_id=page.document_id,
        page_index=page.page_index,
        key_index=0,
        kind="value",
        text=text,
        day=day,
    )
