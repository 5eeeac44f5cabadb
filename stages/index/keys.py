"""Keys: the texts that a session or round of a chat is found by (LongMemEval section 5.3)."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, ClassVar, Literal

from pipeline.ask import Ask
from pipeline.calls import Subject
from pipeline.errors import AccountingError, Problem
from pipeline.prompts import Asked, Prompt
from pipeline.rows import IndexRow, Record, UnitRows
from pipeline.stage import Role, Stage
from pipeline.trace_lines import Line, titled
from stages.index.paginate import Page
from stages.prompts.extract_events import ExtractEvents
from stages.prompts.extract_facts import ExtractFacts
from stages.prompts.extract_keyphrases import ExtractKeyphrases
from stages.prompts.extract_summary import ExtractSummary
from stages.text.chats import day_of, said_by, session_dates
from stages.text.words import without_header

Expansion = Literal["none", "summary", "keyphrases", "facts", "events"]
Join = Literal["separate", "merge", "replace", "merge_as_published"]
_PROMPTS: Mapping[str, type[Prompt[Any]]] = {
    "summary": ExtractSummary,
    "keyphrases": ExtractKeyphrases,
    "facts": ExtractFacts,
    "events": ExtractEvents,
}
_KINDS = {"keyphrases": "keyphrase", "facts": "fact", "events": "event"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Key(IndexRow):
    """A text that a page is found by. `kind`: value (its own text), summary, keyphrase, fact,
    event, or merged. Dates, as YYYY/MM/DD: of the event, else of the session."""

    table: ClassVar[str] = "keys"
    key: ClassVar[tuple[str, ...]] = ("document_id", "page_index", "key_index")
    once_per_memory: ClassVar[bool] = False  # several expansions of the same pages
    sizes: ClassVar[str | None] = """
        select memory, 'keys per page' as measure, 'pages' as rows_of, 90 as place,
          count(text)::double as value
        from keys group by memory, step_id, document_id, page_index"""
    page_index: int
    key_index: int
    kind: str
    text: str | None  # null: the extractor did not say it, or the page has no key
    start_date: str | None
    end_date: str | None

    def lack(self) -> str | None:
        """Only where there was no reply: after one that cannot be read the value is the key."""
        is_reply = self.problem in (None, "truncated", "unparseable")
        return None if is_reply else f"keys of page {self.page_index}: {self.problem}"

    @classmethod
    def trace(cls, row: Mapping[str, Any]) -> Sequence[Line]:
        when = "" if row["start_date"] is None else f", {row['start_date']}"
        problem = f", {row['problem']}" if row["problem"] else ""
        return [f"<Page {row['page_index']}> ({row['kind']}{when}{problem}) {row['text'] or '-'}"]

    @classmethod
    def trace_all(cls, rows: Sequence[Mapping[str, Any]]) -> Sequence[Line]:
        return titled(f"KEYS ({len(rows)})", rows, cls.trace)


class MakeKeys(Stage):
    """`expansion`: what the extractor makes of a value besides. `join`: separate, the value and
    each item are keys; merge, one key with the items before the value; replace, the items alone;
    where there are none the value is the key. merge_as_published as merge, but where there are none
    the page has no key: so the authors' code loses it from the index. `side`: the turns of the
    value that its key has, the user's in the paper.
    """

    name: ClassVar[str] = "keys"
    version: ClassVar[int] = 1
    reads: ClassVar[tuple[type[Record], ...]] = (Page,)
    writes: ClassVar[type[Record]] = Key
    role: ClassVar[Role] = "extractor"
    prompts: ClassVar[tuple[type[Prompt[Any]], ...]] = tuple(_PROMPTS.values())
    expansion: Expansion
    join: Join
    side: Literal["user", "both"]

    def asked(self) -> tuple[type[Prompt[Any]], ...]:
        return () if self.expansion == "none" else (_PROMPTS[self.expansion],)

    async def run(self, rows: UnitRows, ask: Ask) -> list[Key]:
        """Pages -> their Keys, in page order. A value that several histories share is asked about
        once. Problems: truncated, unparseable (the value is the key); context_overflow, timeout,
        engine_failed (it is, too, but the document's questions are not answered)."""
        dates = session_dates([page.text or "" for page in rows[Page]])
        pages = zip(rows[Page], dates, strict=True)
        made = await asyncio.gather(*(self._keys(page, date, ask) for page, date in pages))
        return [
            replace(row, key_index=index) for found in made for index, row in enumerate(found)
        ]

    async def _keys(self, page: Page, date: str, ask: Ask) -> list[Key]:
        value = _key(page, "value", self._side(page), day_of(date))
        if self.expansion == "none":
            return [value]
        prompt = self._prompt(page, date)
        asked = await ask(prompt, Subject(page_index=page.page_index), is_shared=True)
        items = self._items(value, asked)
        failed = replace(value, kind=_KINDS.get(self.expansion, self.expansion), text=None,
                         problem=asked.problem)  # fmt: skip
        return [*self._joined(value, items), *([failed] if asked.problem else [])]

    def _side(self, page: Page) -> str:
        text = page.text or ""
        return said_by(text, "user") if self.side == "user" else without_header(text).strip()

    def _prompt(self, page: Page, date: str) -> Prompt[Any]:
        """Only events depend on the session's date: other replies are shared whatever it is."""
        said_at = date if self.expansion == "events" else ""
        return _PROMPTS[self.expansion](chat=self._side(page), said_at=said_at)  # type: ignore[call-arg]  # all four take these

    def _items(self, value: Key, asked: Asked[Any]) -> list[Key]:
        """The keys that a reply holds."""
        if asked.value is None:
            return []
        if self.expansion == "summary":
            return [replace(value, kind="summary", text=asked.value)]
        kind = _KINDS[self.expansion]
        if self.expansion != "events":
            return [replace(value, kind=kind, text=text) for text in asked.value]
        return [
            replace(value, kind=kind, text=text, start_date=day or value.start_date,
                    end_date=day or value.end_date)
            for day, text in asked.value
        ]  # fmt: skip

    def _joined(self, value: Key, items: Sequence[Key]) -> list[Key]:
        if self.join == "separate":
            return [value, *items]
        if not items:
            return [replace(value, text=None) if self.join == "merge_as_published" else value]
        if self.join == "replace":
            return list(items)
        text = " ".join([*(item.text or "" for item in items), value.text or ""])
        days = sorted(d for row in (value, *items) for d in (row.start_date, row.end_date) if d)
        first, last = (days[0], days[-1]) if days else (None, None)
        return [replace(value, kind="merged", text=text, start_date=first, end_date=last)]

    def failed(self, rows: UnitRows, problem: Problem, detail: str | None) -> list[Key]:
        return [
            replace(_key(page, "value", None, None), problem=problem, detail=detail)
            for page in rows[Page]
        ]

    def check(self, rows: UnitRows, made: Sequence[Record]) -> None:
        """Raise AccountingError unless every page has keys, numbered from 0, in page order."""
        numbers = [(row.page_index, row.key_index) for row in made if isinstance(row, Key)]
        of_pages = {page: [n for _, n in own] for page, own in groupby(numbers, lambda k: k[0])}
        is_numbered = all(own == list(range(len(own))) for own in of_pages.values())
        if list(of_pages) != [page.page_index for page in rows[Page]] or not is_numbered:
            raise AccountingError(f"{rows.document.document_id}: keys do not match pages")


def _key(page: Page, kind: str, text: str | None, day: str | None) -> Key:
    return Key(
        document_id=page.document_id,
        page_index=page.page_index,
        key_index=0,
        kind=kind,
        text=text,
        start_date=day,
        end_date=day,
    )
