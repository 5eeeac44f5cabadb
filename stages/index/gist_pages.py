"""Shorten each page of a document to its gist. Knows nothing of questions."""

import asyncio
from collections.abc import Sequence
from typing import Any, ClassVar

from pydantic import Field

from pipeline.asking.ask import Ask
from pipeline.core.calls import Subject
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
            return Gist.about(page, problem="empty_input")
        subject = Subject(page_index=page.page_index)
        asked = await ask(self.prompt(text), subject, is_shared=header is not None)
        gist = (asked.value or "") if asked.has_reply else None
        return Gist.about(
            page,
            gist=f"{header} {gist}" if header and gist else gist,
            num_words=num_words(gist or ""),
            problem=asked.problem,
        )


class ConditionalGists(GistPages):
    """Gists for a `task` that is known before reading (appendix E.1)."""

    kind: ClassVar[str] = "conditional"
    version: ClassVar[int] = 1
    prompts: ClassVar[tuple[type[Prompt[Any]], ...]] = (ShortenPageForTask,)
    task: str = Field(min_length=1)

    def prompt(self, text: str) -> ShortenPage:
        return ShortenPageForTask(page=text, task=self.task)
