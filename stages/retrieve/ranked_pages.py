"""Look-ups without a model call: BM25, dense, random and oracle pages."""

import random
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field, PositiveInt

from pipeline.ask import Ask
from pipeline.embedder import EmbedderSettings, Vectors
from pipeline.rows import Question, Record, Span, UnitRows
from pipeline.stage import ASKED, GOLD
from stages.index.embed import Embedding
from stages.index.paginate import Page
from stages.retrieve.look_up import LookUp, Lookup, turn_row
from stages.score.spans import covered_chars
from stages.text.ranking import rank, rank_by_words

Ranking = Literal["plus_on_stems", "okapi_on_words"]


class RankedPages(LookUp):
    """Base class: ranks the pages and uses the best `top_k`; null: all, of which the answer is
    made from the best that fit the context."""

    reads: ClassVar[tuple[type[Record], ...]] = (Page,)
    top_k: PositiveInt | None

    async def turns(self, rows: UnitRows, question: Question, ask: Ask) -> list[Lookup]:
        """One turn: the best `top_k` pages, best first. No calls, no problems."""
        best = tuple(self.best(rows[Page], question)[: self.top_k])
        return [replace(turn_row(question), requested=best, used=best)]

    @abstractmethod
    def best(self, pages: Sequence[Page], question: Question) -> list[int]:
        """Page indexes, best first."""


class BM25(RankedPages):
    """BM25 over the document's own pages (ReadAgent section 4.2). Ties go to the lower page.

    `plus_on_stems`: rank-bm25's BM25Plus on stems without stop words, since Okapi scores a word 0
    that half of few pages contain. `okapi_on_words`: Okapi, which the paper names, on lower-case
    words as they stand.
    """

    kind: ClassVar[str] = "bm25"
    version: ClassVar[int] = 1

    bm25: Ranking

    def best(self, pages: Sequence[Page], question: Question) -> list[int]:
        return ranked(self.bm25, pages, question.question)


def ranked(bm25: Ranking, pages: Sequence[Page], query: str) -> list[int]:
    """Page indexes by BM25, best first."""
    rank_texts = rank if bm25 == "plus_on_stems" else rank_by_words
    return rank_texts([page.text or "" for page in pages], query)


class Dense(LookUp):
    """The pages whose embeddings are nearest to the question's ("neural retrieval", section 4.2).

    The embeddings are those of pages or of gists; the raw pages are read in both cases. `top_k` as
    for `RankedPages`.
    """

    kind: ClassVar[str] = "dense"
    version: ClassVar[int] = 1
    reads: ClassVar[tuple[type[Record], ...]] = (Embedding,)
    top_k: PositiveInt | None
    # Not hashed here: the step of the embeddings names the model.
    embedder: EmbedderSettings = Field(exclude=True)

    async def run(self, rows: UnitRows, ask: Ask) -> list[Lookup]:
        """Questions -> one turn each: the best `top_k` pages, best first. No calls, no problems."""
        asked = await self.embedder.embed([q.question for q in rows.questions], "query")
        ranked = [tuple(pages[: self.top_k]) for pages in nearest(rows[Embedding], asked)]
        return [
            replace(turn_row(question), requested=best, used=best)
            for question, best in zip(rows.questions, ranked, strict=True)
        ]


def nearest(rows: Sequence[Embedding], questions: Vectors) -> list[list[int]]:
    """For each question vector the page indexes, best first, by their best chunk's dot product.

    `questions`: (questions, dimensions). Ties go to the lower page; a page without an embedding
    comes last.
    """
    embedded = [row for row in rows if row.embedding is not None]
    best = np.full((1 + max((row.page_index for row in rows), default=-1), len(questions)), -np.inf)
    if embedded:
        chunks = np.array([row.embedding for row in embedded], dtype=np.float32)
        # Rounded so that equal texts tie: their vectors differ in the seventh digit by batch.
        np.maximum.at(best, [row.page_index for row in embedded], np.round(chunks @ questions.T, 5))
    return [list(map(int, order)) for order in np.argsort(-best.T, axis=1, kind="stable")]


class RandomPages(RankedPages):
    """A lower baseline: pages drawn at random, seeded by (seed, question_id, repeat)."""

    kind: ClassVar[str] = "random"
    version: ClassVar[int] = 1
    seed: int
    repeat: int

    def best(self, pages: Sequence[Page], question: Question) -> list[int]:
        draw = random.Random(f"{self.seed}/{question.question_id}/{self.repeat}")
        return draw.sample(range(len(pages)), len(pages))


class OraclePages(RankedPages):
    """An upper bound: the pages with most gold evidence. Skips questions without any."""

    kind: ClassVar[str] = "oracle"
    version: ClassVar[int] = 1
    question_fields: ClassVar[tuple[str, ...]] = (*ASKED, *GOLD)

    async def turns(self, rows: UnitRows, question: Question, ask: Ask) -> list[Lookup]:
        if not question.evidence:
            return [replace(turn_row(question), skipped=True)]
        return await super().turns(rows, question, ask)

    def best(self, pages: Sequence[Page], question: Question) -> list[int]:
        gold = [_gold_chars(page, question) for page in pages]
        with_gold = [index for index, chars in enumerate(gold) if chars]
        return sorted(with_gold, key=lambda index: (-gold[index], index))


def _gold_chars(page: Page, question: Question) -> int:
    return covered_chars(question.evidence, [Span(page.start_char, page.end_char)])
