"""Extract from sessions or rounds of a chat what they may be found by besides their own text
(LongMemEval sections 5.3 and 5.4, key expansion)."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, ClassVar, Literal

from pipeline.asking.ask import Ask
from pipeline.core.calls import Subject
from pipeline.core.errors import AccountingError, Problem
from pipeline.core.prompts import Prompt
from pipeline.core.rows import Record, UnitRows
from pipeline.work.stage import Role, Stage
from stages.prompts.longmemeval.chat_fields import OfChat
from stages.prompts.longmemeval.extract_events import ExtractEvents
from stages.prompts.longmemeval.extract_facts import ExtractFacts
from stages.prompts.longmemeval.extract_keyphrases import ExtractKeyphrases
from stages.prompts.longmemeval.extract_summary import ExtractSummary
from stages.tables.expansions import Expansion
from stages.tables.pages import Page
from stages.text.chat_text import said_by, session_dates
from stages.text.dates import day_of
from stages.text.words import without_header

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
    it is shown, the user's alone in the paper. Not `enabled`, or of none, it asks nothing.
    """

    name: ClassVar[str] = "expand"
    version: ClassVar[int] = 1
    reads: ClassVar[tuple[type[Record], ...]] = (Page,)
    writes: ClassVar[type[Record]] = Expansion
    role: ClassVar[Role] = "extractor"
    prompts: ClassVar[tuple[type[Prompt[Any]], ...]] = tuple(_PROMPTS.values())
    extracted: Extracted
    side: Side
    enabled: bool

    def prompts_used(self) -> tuple[type[Prompt[Any]], ...]:
        is_asked = self.enabled and self.extracted != "none"
        return (_PROMPTS[self.extracted],) if is_asked else ()

    async def run(self, rows: UnitRows, ask: Ask) -> list[Expansion]:
        """Pages -> Expansions, in page order. A text that several histories share is asked about
        once, for events once per date. Problems: truncated, unparseable; empty_input (a page
        without words); context_overflow, timeout, engine_failed."""
        if not self.prompts_used():
            return [_row(page, "none", None) for page in rows[Page]]
        dates = session_dates([page.text or "" for page in rows[Page]])
        pages = zip(rows[Page], dates, strict=True)
        made = await asyncio.gather(*(self._of_page(page, date, ask) for page, date in pages))
        return [row for found in made for row in found]

    async def _of_page(self, page: Page, date: str, ask: Ask) -> list[Expansion]:
        # Only events depend on the session's date: other replies are shared whatever it is.
        said_at = date if self.extracted == "events" else ""
        row = _row(page, _KINDS[self.extracted], day_of(date) or None)
        chat = side_of(page, self.side)
        if not chat:
            return [replace(row, problem="empty_input")]
        prompt = _PROMPTS[self.extracted](chat=chat, said_at=said_at)
        asked = await ask(prompt, Subject(page_index=page.page_index), is_shared=True)
        items = [
            replace(row, item_index=index, text=text, day=day or row.day)
            for index, (day, text) in enumerate(self._items(asked.value))
        ]
        return items or [replace(row, problem=asked.problem)]

    def _items(self, value: Any) -> list[tuple[str, str]]:
        """Day and text of each item of a reply, None where it cannot be read; only events have
        days."""
        if value is None or self.extracted == "events":
            return list(value or ())
        return [("", text) for text in ([value] if self.extracted == "summary" else value)]

    def failed(self, rows: UnitRows, problem: Problem, detail: str | None) -> list[Expansion]:
        kind = _KINDS.get(self.extracted, "none")
        return [replace(_row(page, kind, None), problem=problem, detail=detail)
                for page in rows[Page]]  # fmt: skip

    def check(self, rows: UnitRows, made: Sequence[Record]) -> None:
        """Raise AccountingError unless every page has items, numbered from 0, in page order."""
        numbers = [(row.page_index, row.item_index) for row in made if isinstance(row, Expansion)]
        refuse_page_gaps(rows, numbers, "items")


def refuse_page_gaps(rows: UnitRows, numbers: Sequence[tuple[int, int]], what: str) -> None:
    """Raise AccountingError unless every page has rows, in page order; `numbers`: a row's page
    index, and its own within the page, which counts from 0."""
    of_pages = {page: [n for _, n in own] for page, own in groupby(numbers, lambda row: row[0])}
    is_numbered = all(own == list(range(len(own))) for own in of_pages.values())
    if list(of_pages) != [page.page_index for page in rows[Page]] or not is_numbered:
        raise AccountingError(f"{rows.document.document_id}: {what} do not match pages")


def side_of(page: Page, side: Side) -> str:
    """The turns of a page without its session's header: those of the user, or all."""
    text = page.text or ""
    return said_by(text, "user") if side == "user" else without_header(text).strip()


def _row(page: Page, kind: str, day: str | None) -> Expansion:
    return Expansion(
        document_id=page.document_id,
        page_index=page.page_index,
        item_index=0,
        kind=kind,
        text=None,
        day=day,
    )
