"""Extract items from sessions or rounds of a chat, and make the keys that these are found by
(LongMemEval sections 5.3 and 5.4)."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal

from pipeline.asking.ask import Ask
from pipeline.core.calls import Subject
from pipeline.core.prompts import Prompt
from pipeline.core.rows import Record, UnitRows
from pipeline.work.stage import Role, Stage
from stages.prompts.longmemeval import (
    ExtractEvents,
    ExtractFacts,
    ExtractKeyphrases,
    ExtractSummary,
    ListFromChat,
    OfChat,
)
from stages.tables.keys import Expansion, Key
from stages.tables.pages import Page
from stages.text.chat_text import day_of, said_by, session_dates
from stages.text.words import sentence_spans, without_header

Side = Literal["user", "both"]
Extracted = Literal["none", "summary", "keyphrases", "facts", "events"]
_PROMPTS: Mapping[str, type[OfChat[Any]]] = {
    "summary": ExtractSummary,
    "keyphrases": ExtractKeyphrases,
    "facts": ExtractFacts,
    "events": ExtractEvents,
}
_KINDS = {"summary": "summary", "keyphrases": "keyphrase", "facts": "fact", "events": "event"}


class Expand(Stage):
    """Ask the role extractor for items of each page: `extracted` says which. `side`: the turns that
    it is shown, the user's alone in the paper. Not `enabled`, or of none, it asks nothing. With
    `extraction_examples` prompts for facts and events have ten examples (appendix D).
    """

    name = "expand"
    version = 1
    reads = (Page,)
    writes = Expansion
    role: ClassVar[Role] = "extractor"
    prompts = tuple(_PROMPTS.values())
    extracted: Extracted
    side: Side
    enabled: bool
    extraction_examples: bool

    def prompts_used(self) -> tuple[type[Prompt[Any]], ...]:
        is_asked = self.enabled and self.extracted != "none"
        return (_PROMPTS[self.extracted],) if is_asked else ()

    async def run(self, rows: UnitRows, ask: Ask) -> list[Expansion]:
        """Pages -> Expansions, in page order. A text that several histories share is asked about
        once, for events once per date. Problems: truncated, unparseable; empty_input (a page
        without words); context_overflow, timeout, refused, engine_failed."""
        if not self.prompts_used():
            return [Expansion.about(page, kind="none") for page in rows[Page]]
        dates = session_dates([page.text or "" for page in rows[Page]])
        pages = zip(rows[Page], dates, strict=True)
        made = await asyncio.gather(*(self._of_page(page, date, ask) for page, date in pages))
        return [row for found in made for row in found]

    async def _of_page(self, page: Page, date: str, ask: Ask) -> list[Expansion]:
        # Only events depend on the session's date: other replies are shared whatever it is.
        said_at = date if self.extracted == "events" else ""
        row = Expansion.about(page, kind=_KINDS[self.extracted], day=day_of(date) or None)
        chat = side_of(page, self.side)
        if not chat:
            return [replace(row, problem="empty_input")]
        prompt = self._prompt(chat, said_at)
        asked = await ask(prompt, Subject(page_index=page.page_index), is_shared=True)
        items = [
            replace(row, item_index=index, text=text, day=day or row.day)
            for index, (day, text) in enumerate(self._items(asked.value))
        ]
        return items or [replace(row, problem=asked.problem)]

    def _prompt(self, chat: str, said_at: str) -> OfChat[Any]:
        prompt = _PROMPTS[self.extracted]
        if issubclass(prompt, ListFromChat):
            return prompt(chat, said_at, with_examples=self.extraction_examples)
        return prompt(chat, said_at)

    def _items(self, value: Any) -> list[tuple[str, str]]:
        """Day (of events only) and text of each item; none where the reply could not be read."""
        if value is None or self.extracted == "events":
            return list(value or ())
        return [("", text) for text in ([value] if self.extracted == "summary" else value)]

    def empty(self, rows: UnitRows, about: Record) -> Expansion:
        return Expansion.about(about, kind=_KINDS.get(self.extracted, "none"))


def side_of(page: Page, side: Side) -> str:
    """The page's turns, all or the user's, without the session's header."""
    text = page.text or ""
    return said_by(text, "user") if side == "user" else without_header(text).strip()


Join = Literal[
    "merge", "separate", "replace", "split_merge", "split_separate", "split_replace",
    "merge_as_published",
]  # fmt: skip


class MakeKeys(Stage):
    """`join`: merge, one key with the items that were extracted before the value; separate, the
    value is a key and the items together another; replace, the items alone. With split_ each item,
    of a summary each sentence, is joined by itself. Where there are no items the value is the key.
    merge_as_published as merge, but a page whose reply was an empty list has no key: so it is lost
    from the index in the authors' code (index_expansion_utils.py). `side`: the turns of the value,
    the user's in the paper. No calls.
    """

    name = "keys"
    version = 3
    reads = (Page, Expansion)
    writes = Key
    join: Join
    side: Side

    async def run(self, rows: UnitRows, ask: Ask) -> list[Key]:
        """Pages, and what was extracted from them -> their Keys, in page order."""
        of_pages: dict[int, list[Expansion]] = defaultdict(list)
        for row in rows[Expansion]:
            of_pages[row.page_index].append(row)
        dates = session_dates([page.text or "" for page in rows[Page]])
        made: list[Key] = []
        for page, date in zip(rows[Page], dates, strict=True):
            text = side_of(page, self.side)
            value = Key.about(page, kind="value", text=text, day=day_of(date) or None)
            keys = self._joined(value, of_pages[page.page_index])
            made += [replace(key, key_index=index) for index, key in enumerate(keys)]
        return made

    def _joined(self, value: Key, found: Sequence[Expansion]) -> list[Key]:
        items = [
            replace(value, kind=row.kind, text=row.text, day=row.day)
            for row in found
            if row.text is not None
        ]
        if not items:
            is_empty = any(row.kind in ("fact", "event") and not row.problem for row in found)
            is_lost = self.join == "merge_as_published" and is_empty
            return [replace(value, text=None) if is_lost else value]
        is_split = self.join.startswith("split_")
        items = _split(items) if is_split else [_together(items, value.day)]
        if self.join.endswith("separate"):
            return [value, *items]
        if self.join.endswith("replace"):
            return items
        return [replace(value, kind="merged", text=f"{item.text} {value.text}") for item in items]

    def empty(self, rows: UnitRows, about: Record) -> Key:
        return Key.about(about, kind="value")


def _together(items: Sequence[Key], day: str | None) -> Key:
    """The items of a page as one; a single item keeps its day."""
    sign = "; " if items[0].kind == "keyphrase" else " "
    text = sign.join(item.text or "" for item in items)
    return items[0] if len(items) == 1 else replace(items[0], text=text, day=day)


def _split(items: Sequence[Key]) -> list[Key]:
    """One item for each sentence of a summary; other items unchanged."""
    return [
        replace(item, text=part)
        for item in items
        for part in (_sentences(item.text or "") if item.kind == "summary" else [item.text])
    ]


def _sentences(text: str) -> list[str]:
    return [text[start:end].strip() for start, end in sentence_spans(text)]
