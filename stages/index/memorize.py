"""Choose the parts of a document that the memory model is shown and asked for clues about (MemoRAG
section 2).

The paper's own memory, key-value states that a trained model compresses, needs the authors' weights
and code; a plugin may add it as another kind of this stage.
"""

import asyncio
from abc import ABC
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, ClassVar, Literal

from pydantic import NonNegativeInt

from pipeline.asking.ask import Ask
from pipeline.core.calls import Subject
from pipeline.core.prompts import Prompt
from pipeline.core.rows import Record, UnitRows
from pipeline.work.stage import Role, Stage
from stages.prompts.answer import Passage
from stages.prompts.memorag import ChunkGist, ClueQuestions, ClueSpans, DraftAnswer, KeyPoints
from stages.tables.pages import Gist, MemoryPassage, Page
from stages.text.fit_to_limit import largest_part, segments
from stages.text.words import num_words

CLUES = (ClueSpans, ClueQuestions, DraftAnswer, KeyPoints)
MemoryFit = Literal["refuse", "head", "tail", "split"]


class Memorize(Stage, ABC):
    """Base class: subclasses make the passages; those that do not fit are left out or divided.

    `memory_fit` decides where the passages, `question_tokens` for a question and the reply do not
    fit the memory model's context. refuse: all are shown, and each call is a context_overflow;
    head, tail: the first or last passages that fit are the memory; split: they are divided into
    parts that fit, and every part is asked for clues.
    """

    name = "memorize"
    writes = MemoryPassage
    role: ClassVar[Role] = "memory"
    # The clues are not asked here: their length says how much memory fits beside them.
    prompts: ClassVar[tuple[type[Prompt[Any]], ...]] = CLUES
    memory_fit: MemoryFit
    question_tokens: NonNegativeInt

    def prompts_used(self) -> tuple[type[Prompt[Any]], ...]:
        return () if self.memory_fit == "refuse" else CLUES

    async def run(self, rows: UnitRows, ask: Ask) -> list[MemoryPassage]:
        """The document, or rows of its memory -> MemoryPassages, in order."""
        passages = await self.passages(rows, ask)
        if self.memory_fit != "refuse":
            # A part has room beside the longest prompt, its reply and the question.
            nothing = (Passage("text", None, ""),), "", ()  # passages, question, options
            around = [await ask.num_tokens(prompt(*nothing)) + ask.max_reply_tokens(prompt)
                      for prompt in CLUES]  # fmt: skip
            limit = max(1, ask.context_tokens - max(around) - self.question_tokens)
            passages = await self.fitted(rows, passages, limit, ask)
        return [replace(row, passage_index=index) for index, row in enumerate(passages)]

    async def passages(self, rows: UnitRows, ask: Ask) -> list[MemoryPassage]:
        """All passages, as one part; by default the whole text."""
        return [whole_text(rows)]

    async def fitted(
        self, rows: UnitRows, passages: Sequence[MemoryPassage], limit: int, ask: Ask
    ) -> list[MemoryPassage]:
        """The passages in parts of at most `limit` tokens, which are filled one after another; a
        single passage may have more."""
        is_tail = self.memory_fit == "tail"
        fitted: list[MemoryPassage] = []
        part = total = 0
        for row in reversed(passages) if is_tail else passages:
            size = await ask.text_tokens(f"{passage_text(rows, row)}\n\n")
            if fitted and total + size > limit:
                if self.memory_fit != "split":
                    break
                part, total = part + 1, 0
            total += size
            fitted.append(replace(row, part_index=part))
        return fitted[::-1] if is_tail else fitted

    def empty(self, rows: UnitRows, about: Record) -> MemoryPassage:
        return whole_text(rows)


def whole_text(rows: UnitRows) -> MemoryPassage:
    document = rows.document
    return MemoryPassage.about(
        document, start_char=0, end_char=len(document.text), num_words=document.num_words
    )


def of_page(page: Record, gist: str) -> MemoryPassage:
    return MemoryPassage.about(page, gist=gist, num_words=num_words(gist))


def passage_text(rows: UnitRows, row: MemoryPassage) -> str:
    if row.gist is not None:
        return row.gist
    return rows.document.text[row.start_char : row.end_char].strip()


def memory_parts(rows: UnitRows) -> list[tuple[Passage, ...]]:
    """For each part of the memory, the passages shown together."""

    def passage(row: MemoryPassage) -> Passage:
        return Passage("text" if row.gist is None else "gist", None, passage_text(rows, row))

    parts = groupby(rows[MemoryPassage], lambda row: row.part_index)
    return [tuple(map(passage, part)) for _, part in parts]


class MemorizeText(Memorize):
    """The whole text: all prompts about a document begin with it, so a long-context model reads it
    once and finds it in its prefix cache for each question. The engine only counts."""

    kind = "full"
    version = 1

    async def fitted(
        self, rows: UnitRows, passages: Sequence[MemoryPassage], limit: int, ask: Ask
    ) -> list[MemoryPassage]:
        """Cuts between words, and parts at sentence ends where there are any."""
        text, whole = rows.document.text, whole_text(rows)
        if self.memory_fit == "split":
            spans = await segments(text, limit, ask.text_tokens)
        else:
            is_head = self.memory_fit == "head"

            async def size(num: int) -> int:
                return await ask.text_tokens(text[:num] if is_head else text[len(text) - num :])

            num = await largest_part(text, "first" if is_head else "last", limit, size)
            spans = [(0, num) if is_head else (len(text) - num, len(text))]
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


class MemorizeGists(Memorize):
    """The gists of the run's own pages, which ReadAgent reads. The engine only counts."""

    kind = "gist_memory"
    version = 1
    reads = (Gist,)

    async def passages(self, rows: UnitRows, ask: Ask) -> list[MemoryPassage]:
        return [of_page(gist, gist.gist or "") for gist in rows[Gist]]


class MemorizeChunks(Memorize):
    """The gists of long chunks, made by the memory model itself (MemoRAG-Lite of the authors'
    repository: chunks of 4,096 tokens, gists of 512 at most)."""

    kind = "gists"
    version = 1
    reads = (Page,)
    prompts = (ChunkGist, *CLUES)

    def prompts_used(self) -> tuple[type[Prompt[Any]], ...]:
        return (ChunkGist, *super().prompts_used())

    async def passages(self, rows: UnitRows, ask: Ask) -> list[MemoryPassage]:
        """Problems: truncated (the text is kept), unparseable (a complete reply without a word);
        without a gist: context_overflow, empty_input, timeout, refused, engine_failed."""
        return list(await asyncio.gather(*(self._passage(page, ask) for page in rows[Page])))

    async def _passage(self, page: Page, ask: Ask) -> MemoryPassage:
        text = (page.text or "").strip()
        if not text:
            return replace(of_page(page, ""), problem="empty_input")
        reply = await ask(ChunkGist(text), Subject(page_index=page.page_index))
        return replace(of_page(page, reply.value or ""), problem=reply.problem)
