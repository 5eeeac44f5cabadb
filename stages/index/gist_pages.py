"""Shorten each page of a document to its gist. Knows nothing of questions."""

import asyncio
from collections.abc import Sequence
from typing import Any, ClassVar

from pydantic import Field

from pipeline.asking.ask import Ask
from pipeline.core.calls import Subject
from pipeline.core.errors import AccountingError, Problem
from pipeline.core.prompts import Prompt
from pipeline.core.rows import Record, UnitRows
from pipeline.work.stage import Stage
from stages.prompts.readagent.gist import ShortenPage
from stages.prompts.readagent.gist_for_task import ShortenPageForTask
from stages.tables.gists import Gist
from stages.tables.pages import Page
from stages.text.words import header_of, num_words, without_header


class GistPages(Stage):
    """ReadAgent section 3.1: shorten each page by itself ("shorten", never "summarize")."""

    name: ClassVar[str] = "gist"
    version: ClassVar[int] = 1
    reads: ClassVar[tuple[type[Record], ...]] = (Page,)
    writes: ClassVar[type[Record]] = Gist
    prompts: ClassVar[tuple[type[Prompt[Any]], ...]] = (ShortenPage,)
    page_breaks: bool  # the document is sessions, each with a header on its first page

    async def run(self, rows: UnitRows, ask: Ask) -> list[Gist]:
        """Pages -> one Gist each, in order.

        Problems: truncated (the text is kept), unparseable (a complete reply without a word);
        without a gist: context_overflow, empty_input, timeout, engine_failed.
        """
        headers = self._headers(rows[Page])
        gists = zip(rows[Page], headers, strict=True)
        return list(await asyncio.gather(*(self._gist(page, head, ask) for page, head in gists)))

    def prompt(self, text: str) -> ShortenPage:
        """The prompt about a page's text."""
        return ShortenPage(page=text)

    def _headers(self, pages: Sequence[Page]) -> list[str | None]:
        """The session header of each page, taken from the first page of its session."""
        found: list[str | None] = []
        for page in pages:
            own = header_of(page.text or "") if self.page_breaks else None
            found.append(own or (found[-1] if found else None))
        return found

    async def _gist(self, page: Page, header: str | None, ask: Ask) -> Gist:
        """The header is not in the prompt but put before the gist. So equal sessions of different
        dates and documents send the same request, which is asked once."""
        text = page.text or ""
        text = (without_header(text) if header else text).strip()
        if not text:
            return _row(page, None, "empty_input")
        subject = Subject(page_index=page.page_index)
        asked = await ask(self.prompt(text), subject, is_shared=header is not None)
        gist = (asked.value or "") if asked.has_reply else None
        return _row(page, gist, asked.problem, header=header)

    def failed(self, rows: UnitRows, problem: Problem, detail: str | None) -> list[Gist]:
        return [_row(page, None, problem, detail) for page in rows[Page]]

    def check(self, rows: UnitRows, made: Sequence[Record]) -> None:
        """Raise AccountingError unless every page has exactly one gist, in order."""
        indexes = [gist.page_index for gist in made if isinstance(gist, Gist)]
        if indexes != [page.page_index for page in rows[Page]]:
            raise AccountingError(f"{rows.document.document_id}: gists do not match pages")


class ConditionalGists(GistPages):
    """Gists for a `task` that is known before reading (appendix E.1)."""

    kind: ClassVar[str] = "conditional"
    version: ClassVar[int] = 1
    prompts: ClassVar[tuple[type[Prompt[Any]], ...]] = (ShortenPageForTask,)
    task: str = Field(min_length=1)

    def prompt(self, text: str) -> ShortenPage:
        return ShortenPageForTask(page=text, task=self.task)


def _row(
    page: Page,
    gist: str | None,
    problem: Problem | None,
    detail: str | None = None,
    header: str | None = None,
) -> Gist:
    return Gist(
        document_id=page.document_id,
        page_index=page.page_index,
        gist=f"{header} {gist}" if header and gist else gist,
        num_words=num_words(gist or ""),
        problem=problem,
        detail=detail,
    )
