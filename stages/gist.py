"""Shorten each page of a document to its gist. Knows nothing of questions."""

import asyncio
from collections.abc import Sequence
from typing import ClassVar

from pipeline.ask import Ask, Subject
from pipeline.errors import AccountingError, Problem
from pipeline.records import Gist, Page, Record
from pipeline.stage import DocumentRows, Stage
from stages.fields import ShortenPage


class GistPages(Stage):
    """ReadAgent section 3.1: each page by itself, "shorten", never "summarize"."""

    name: ClassVar[str] = "gist"
    version: ClassVar[int] = 1
    reads: ClassVar[tuple[str, ...]] = ("pages",)
    writes: ClassVar[type[Record]] = Gist
    prompts: ClassVar[tuple[str, ...]] = ("gist",)
    max_reply_tokens: int

    async def run(self, rows: DocumentRows, ask: Ask) -> list[Gist]:
        """Pages -> one Gist each, in order.

        Problems: truncated (the text is kept), unparseable (an empty reply), and without a text
        context_overflow, empty_input, timeout, engine_failed.
        """
        return list(await asyncio.gather(*(self._gist(page, ask) for page in rows.pages)))

    async def _gist(self, page: Page, ask: Ask) -> Gist:
        text = (page.text or "").strip()
        if not text:
            return _row(page, None, "empty_input")
        subject = Subject(page_index=page.page_index)
        reply = await ask(ShortenPage(page=text), self.max_reply_tokens, subject)
        if reply.problem not in (None, "truncated"):
            return _row(page, None, reply.problem)
        gist = reply.text.strip()
        return _row(page, gist, reply.problem if gist else "unparseable")

    def failed(self, rows: DocumentRows, problem: Problem, detail: str | None) -> list[Gist]:
        return [_row(page, None, problem, detail) for page in rows.pages]

    def check(self, rows: DocumentRows, made: Sequence[Record]) -> None:
        """Raise AccountingError unless every page has exactly one gist, in order."""
        indexes = [gist.page_index for gist in made if isinstance(gist, Gist)]
        if indexes != [page.page_index for page in rows.pages]:
            raise AccountingError(f"{rows.document.document_id}: gists do not match pages")


def _row(page: Page, gist: str | None, problem: Problem | None, detail: str | None = None) -> Gist:
    return Gist(
        document_id=page.document_id,
        page_index=page.page_index,
        gist=gist,
        num_words=len((gist or "").split()),
        problem=problem,
        detail=detail,
    )
