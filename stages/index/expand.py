"""Extract from sessions or rounds of a chat what they may be found by besides their own text
(LongMemEval sections 5.3 and 5.4, key expansion)."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, ClassVar, Literal

from pipeline.ask import Ask
from pipeline.calls import Subject
from pipeline.errors import AccountingError, Problem
from pipeline.prompts import Prompt
from pipeline.rows import IndexRow, Record, UnitRows
from pipeline.stage import Role, Stage
from pipeline.trace_lines import Line, titled
from stages.index.paginate import Page
from stages.prompts.chats import OfChat
from stages.prompts.extract_events import ExtractEvents
from stages.prompts.extract_facts import ExtractFacts
from stages.prompts.extract_keyphrases import ExtractKeyphrases
from stages.prompts.extract_summary import ExtractSummary
from stages.text.chats import said_by, session_dates
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion(IndexRow):
    """One item that was extracted from a page; a page of which nothing was said has one row without
    a text. `kind`: summary, keyphrase, fact or event; none, where nothing was asked. `day`, as
    YYYY/MM/DD: of an event, else of the session."""

    table: ClassVar[str] = "expansions"
    key: ClassVar[tuple[str, ...]] = ("document_id", "page_index", "item_index")
    once_per_memory: ClassVar[bool] = False  # of several kinds
    page_texts: ClassVar[str | None] = """
        select memory, document_id, page_index, 40 as place, 'extracted' as heading,
          string_agg(text, chr(10) order by kind, item_index) as text, null::bigint as num_words,
          min(problem) as problem
        from expansions group by all"""
    page_index: int  # of the page
    item_index: int  # of the page's items, from 0
    kind: str  # summary, keyphrase, fact or event; none, where nothing was asked
    text: str | None  # the item; null: the page has none
    day: str | None = None  # YYYY/MM/DD, of an event, else of the session

    def lack(self) -> str | None:
        """Only where there was no reply: after one that cannot be read the value is the key."""
        is_reply = self.problem in (None, "truncated", "unparseable", "empty_input")
        return None if is_reply else f"expand of page {self.page_index}: {self.problem}"

    @classmethod
    def trace(cls, row: Mapping[str, Any]) -> Sequence[Line]:
        facts = ", ".join(filter(None, [row["kind"], row["day"], row["problem"]]))
        return [f"<Page {row['page_index']}> ({facts}) {row['text'] or '-'}"]

    @classmethod
    def trace_all(cls, rows: Sequence[Mapping[str, Any]]) -> Sequence[Line]:
        return titled(f"EXTRACTED ({len(rows)})", rows, cls.trace)


class Expand(Stage):
    """What the role extractor takes from each page: `extracted` says what. `side`: the turns that
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

    def asked(self) -> tuple[type[Prompt[Any]], ...]:
        is_asked = self.enabled and self.extracted != "none"
        return (_PROMPTS[self.extracted],) if is_asked else ()

    async def run(self, rows: UnitRows, ask: Ask) -> list[Expansion]:
        """Pages -> Expansions, in page order. A text that several histories share is asked about
        once, for events once per date. Problems: truncated, unparseable; empty_input (a page
        without words); context_overflow, timeout, engine_failed."""
        if not self.asked():
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
        """Day and text of each item of a reply, null where it cannot be read; only events have
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
