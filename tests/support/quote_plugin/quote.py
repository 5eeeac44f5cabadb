"""The stage `quote`: of each page that was looked up, the words that help to answer."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from gistmill.plugin import (
    AnswerFromContext,
    Ask,
    Context,
    Lookup,
    Page,
    Passage,
    Prompt,
    Question,
    QuestionRow,
    Record,
    Stage,
    Subject,
    UnitRows,
    best_sentences,
    num_words,
    used_pages,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote(QuestionRow):
    """What one page says to a question; row 0 without a page where none was looked up."""

    table: ClassVar[str] = "quotes"
    key: ClassVar[tuple[str, ...]] = ("question_id", "place")
    place: int
    page_index: int | None = None
    quote: str | None = None


@dataclass(frozen=True)
class CopyQuote(Prompt[str]):
    """Copy the words of a page that say most about the question. The value is the quote."""

    name: ClassVar[str] = "quote"
    version: ClassVar[int] = 1
    max_reply_tokens: ClassVar[int] = 100
    is_whole: ClassVar[bool] = True
    page: str
    question: str
    max_words: int

    def read(self, reply: str, is_cut: bool) -> str | None:
        return reply.strip().strip('"') or None

    def extractive(self) -> str:
        return best_sentences([self.page], self.question, self.max_words)

    def expected(self) -> str:
        return " ".join(self.page.split()[: self.max_words])

    @classmethod
    def samples(cls) -> tuple["CopyQuote", ...]:
        return (cls("The bell {{ rings }}.", "Who rang <5> it?", 8105),)


class QuotePages(Stage):
    """One row per page looked up for a question, in the order of importance."""

    name: ClassVar[str] = "quote"
    version: ClassVar[int] = 1
    reads: ClassVar[tuple[type[Record], ...]] = (Page, Lookup)
    writes: ClassVar[type[Record]] = Quote
    prompts: ClassVar[tuple[type[Prompt[Any]], ...]] = (CopyQuote,)
    max_words: int

    async def run(self, rows: UnitRows, ask: Ask) -> list[Quote]:
        """Questions + Lookups -> Quotes, in question order. Problems: those of `Asked`."""
        found = await asyncio.gather(*(self._of(rows, q, ask) for q in rows.questions))
        return [quote for quotes in found for quote in quotes]

    async def _of(self, rows: UnitRows, question: Question, ask: Ask) -> list[Quote]:
        pages = enumerate(used_pages(rows, question))
        asked = (self._one(rows[Page][index], n, question, ask) for n, index in pages)
        return list(await asyncio.gather(*asked)) or [Quote.about(question)]

    async def _one(self, page: Page, place: int, question: Question, ask: Ask) -> Quote:
        prompt = CopyQuote(page.text or "", question.question, self.max_words)
        subject = Subject(question_id=question.question_id, page_index=page.page_index)
        asked = await ask(prompt, subject)
        return Quote.about(
            question,
            place=place,
            page_index=page.page_index,
            quote=asked.value,
            problem=asked.problem,
        )


class AnswerFromQuotes(AnswerFromContext):
    """From the quotes alone, in document order."""

    kind: ClassVar[str] = "quotes"
    version: ClassVar[int] = 1
    reads: ClassVar[tuple[type[Record], ...]] = (Lookup, Quote)

    def context(self, rows: UnitRows, question: Question, used: Sequence[int]) -> Context:
        quotes = [row for row in rows.of(Quote, question) if row.quote]
        quotes.sort(key=lambda row: row.page_index or 0)
        texts = tuple(Passage("text", None, row.quote or "") for row in quotes)
        return Context(passages=texts, num_words=sum(num_words(text.text) for text in texts))
