"""The kinds of memories that clues come from (MemoRAG section 2)."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from pipeline.asking.ask import Ask
from pipeline.core.calls import Subject
from pipeline.core.prompts import Prompt
from pipeline.core.rows import Record, UnitRows
from stages.index.memorize import CLUES, Memorize, of_page, whole_text
from stages.index.segments import segments
from stages.prompts.memorag.gist_chunk import ShortenChunk
from stages.tables.gists import Gist
from stages.tables.memory_passages import MemoryPassage
from stages.tables.pages import Page
from stages.text.fit_to_limit import largest_part
from stages.text.words import num_words


class MemorizeText(Memorize):
    """The whole text: all prompts about a document begin with it, so a long-context model reads it
    once and finds it in its prefix cache for each question. The engine only counts."""

    kind: ClassVar[str] = "full"
    version: ClassVar[int] = 1

    async def passages(self, rows: UnitRows, ask: Ask) -> list[MemoryPassage]:
        return [whole_text(rows)]

    async def fitted(
        self, rows: UnitRows, made: Sequence[MemoryPassage], limit: int, ask: Ask
    ) -> list[MemoryPassage]:
        """Cut between words; parts at the ends of sentences, where they have any."""
        text, whole = rows.document.text, whole_text(rows)
        if self.memory_fit == "split":
            spans = await segments(text, limit, ask.text_tokens)
        else:
            spans = [await self._span(text, limit, ask)]
        return [
            replace(
                whole,
                part_index=part,
                start_char=start,
                end_char=end,
                num_words=num_words(text[start:end]),
            )
            for part, (start, end) in enumerate(spans)
        ] or [whole]

    async def _span(self, text: str, limit: int, ask: Ask) -> tuple[int, int]:
        keep_first = self.memory_fit == "head"

        async def size(num: int) -> int:
            return await ask.text_tokens(text[:num] if keep_first else text[len(text) - num :])

        num = await largest_part(text, "first" if keep_first else "last", limit, size)
        return (0, num) if keep_first else (len(text) - num, len(text))


class MemorizeGists(Memorize):
    """The gists of the run's own pages, which ReadAgent reads. The engine only counts."""

    kind: ClassVar[str] = "gist_memory"
    version: ClassVar[int] = 1
    reads: ClassVar[tuple[type[Record], ...]] = (Gist,)

    async def passages(self, rows: UnitRows, ask: Ask) -> list[MemoryPassage]:
        return [of_page(gist, gist.gist or "") for gist in rows[Gist]]


class MemorizeChunks(Memorize):
    """The gists of long chunks, made by the memory model itself (MemoRAG-Lite of the authors'
    repository: chunks of 4,096 tokens, gists of 512 at most)."""

    kind: ClassVar[str] = "gists"
    version: ClassVar[int] = 1
    reads: ClassVar[tuple[type[Record], ...]] = (Page,)
    prompts: ClassVar[tuple[type[Prompt[Any]], ...]] = (ShortenChunk, *CLUES)

    def prompts_used(self) -> tuple[type[Prompt[Any]], ...]:
        return (ShortenChunk, *super().prompts_used())

    async def passages(self, rows: UnitRows, ask: Ask) -> list[MemoryPassage]:
        """Problems: truncated (the text is kept), unparseable (a complete reply without a word);
        without a gist: context_overflow, empty_input, timeout, engine_failed."""
        return list(await asyncio.gather(*(self._passage(page, ask) for page in rows[Page])))

    async def _passage(self, page: Page, ask: Ask) -> MemoryPassage:
        text = (page.text or "").strip()
        if not text:
            return replace(of_page(page, ""), problem="empty_input")
        asked = await ask(ShortenChunk(text), Subject(page_index=page.page_index))
        gist = asked.value or ""
        return replace(of_page(page, gist), problem=asked.problem)
