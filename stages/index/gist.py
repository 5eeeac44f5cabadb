"""Shorten each page of a document to its gist. Knows nothing of questions."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import Field

from pipeline.ask import Ask
from pipeline.calls import Subject
from pipeline.errors import AccountingError, Problem
from pipeline.prompts import Prompt
from pipeline.rows import IndexRow, Record, UnitRows
from pipeline.stage import Stage
from pipeline.trace_lines import Line, titled
from stages.index.paginate import Page
from stages.prompts.gist import ShortenPage
from stages.prompts.gist_for_task import ShortenPageForTask
from stages.text.words import header_of, num_words, without_header


@dataclass(frozen=True, slots=True, kw_only=True)
class Gist(IndexRow):
    """The shortened text of one page. A truncated gist keeps its text."""

    table: ClassVar[str] = "gists"
    key: ClassVar[tuple[str, ...]] = ("document_id", "page_index")
    drawn: ClassVar[bool] = True
    memories: ClassVar[str | None] = """
        -- words_per_gist: the mean, in words
        -- gist_compression: 100 * (1 - words of all gists / words of all pages)
        -- truncated_gists: gists that the reply budget ended
        select memory, avg(g.num_words) as words_per_gist,
          100 * (1 - sum(g.num_words) / nullif(sum(p.num_words), 0)) as gist_compression,
          count(*) filter (g.problem = 'truncated') as truncated_gists
        from gists g join pages p using (memory, document_id, page_index) group by memory"""
    # A page without a gist is left out of its document's memory.
    sizes: ClassVar[str | None] = """
        with of_documents as (
          select memory, document_id, sum(g.num_words) as gist_words,
            any_value(d.num_words) as num_words
          from gists g join documents d using (document_id) where gist is not null group by all)
        select memory, 'words per gist memory' as measure, 'documents' as rows_of, 20 as place,
          gist_words::double as value
        from of_documents
        union all by name
        select memory, 'compression rate of the gists, %' as measure, 'documents' as rows_of,
          40 as place, 100 * (1 - gist_words / num_words) as value
        from of_documents
        union all by name
        select memory, 'words per gist' as measure, 'pages' as rows_of, 60 as place,
          num_words::double as value
        from gists where gist is not null"""
    traced: ClassVar[str | None] = """
        select g.*, p.num_words as page_words, p.chosen_by
        from gists g join pages p using (memory, document_id, page_index)"""
    shows: ClassVar[tuple[type[Record], ...]] = (Page,)
    page_texts: ClassVar[str | None] = """
        select memory, document_id, page_index, 20 as place, 'gist' as heading, gist as text,
          num_words, problem
        from gists"""
    page_index: int  # of the page
    gist: str | None  # the shortened text; null: there is none
    num_words: int  # words of the gist

    @classmethod
    def trace(cls, row: Mapping[str, Any]) -> Sequence[Line]:
        words = f"{row['page_words']} -> {row['num_words']} words"
        problem = f", {row['problem']}" if row["problem"] else ""
        return [f"<Page {row['page_index']}> ({words}{problem}) {row['gist'] or '-'}"]

    @classmethod
    def trace_all(cls, rows: Sequence[Mapping[str, Any]]) -> Sequence[Line]:
        return titled(f"GIST MEMORY ({len(rows)} pages)", rows, cls.trace)

    def lack(self) -> str | None:
        return f"gist of page {self.page_index}: {self.problem}" if self.gist is None else None


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

        Problems: truncated (the text is kept), unparseable (a complete reply without a word); with
        a null gist: context_overflow, empty_input, timeout, engine_failed.
        """
        headers = self._headers(rows[Page])
        gists = zip(rows[Page], headers, strict=True)
        return list(await asyncio.gather(*(self._gist(page, head, ask) for page, head in gists)))

    def prompt(self, text: str) -> ShortenPage:
        """What is asked about a page's text."""
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
