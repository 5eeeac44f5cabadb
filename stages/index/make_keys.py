"""Make the keys that a session or round of a chat is found by (LongMemEval section 5.3)."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Literal

from pipeline.asking.ask import Ask
from pipeline.core.rows import Record, UnitRows
from pipeline.work.stage import Stage
from stages.index.expand import Side, side_of
from stages.tables.expansions import Expansion
from stages.tables.keys import Key
from stages.tables.pages import Page
from stages.text.chat_text import session_dates
from stages.text.dates import day_of

Join = Literal["separate", "merge", "replace", "merge_as_published"]


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
            text = side_of(page, self.side)
            value = Key.about(page, kind="value", text=text, day=day_of(date) or None)
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

    def empty(self, rows: UnitRows, about: Record) -> Key:
        return Key.about(about, kind="value")
