"""Look-ups without a model call: BM25, dense, random, oracle and latest pages, visited leaves."""

import random
from abc import abstractmethod
from asyncio import to_thread
from collections.abc import Sequence
from dataclasses import replace
from math import isfinite
from typing import Literal

import numpy as np
from pydantic import Field, PositiveInt

from pipeline.asking.ask import Ask
from pipeline.core.rows import Question, Span, UnitRows
from pipeline.engines.embedder import EmbedderSettings, Vectors
from pipeline.work.stage import ASKED, GOLD
from stages.retrieve.look_up import LookUp, lost_turn, ranked_turn, turn_row
from stages.tables.keys import Embedding
from stages.tables.lookups import Dropped, Lookup, RankedPage, Visit
from stages.tables.pages import Page
from stages.text.ranking import best_first, relevance, relevance_by_words
from stages.text.words import covered_chars


class RankedPages(LookUp):
    """Base class: ranks pages for texts and uses the best `top_k`; None: all, and the answer is
    made from the best that fit the context."""

    top_k: PositiveInt | None

    async def run(self, rows: UnitRows, ask: Ask) -> list[Lookup]:
        """Questions -> their turns, pages best first. No calls. Problem: upstream (a query without
        a reply)."""
        texts = [self.texts(rows, question) for question in rows.questions]
        ranked = iter(await self.rankings(rows, [text for own in texts for text in own]))
        made: list[Lookup] = []
        for question, own in zip(rows.questions, texts, strict=True):
            made += self.found(rows, question, [next(ranked) for _ in own])
        return made

    def texts(self, rows: UnitRows, question: Question) -> list[str]:
        """The texts that are searched for on behalf of a question: itself."""
        return [question.question]

    def found(
        self, rows: UnitRows, question: Question, rankings: Sequence[Sequence[RankedPage]]
    ) -> list[Lookup]:
        """The turns of a question; `rankings`: the pages for each of its texts, best first."""
        return [ranked_turn(question, ranking, self.top_k) for ranking in rankings]

    @abstractmethod
    async def rankings(self, rows: UnitRows, texts: Sequence[str]) -> list[list[RankedPage]]:
        """For each text the pages, best first."""


class ByBM25(RankedPages):
    """Base class: by the BM25 score of the rows of the first of `reads`, which are pages or keys; a
    page's best one counts. Ties go to the earlier.

    `plus_on_stems`: rank-bm25's BM25Plus on stems without stop words, since Okapi scores a word 0
    that half of few pages contain. `okapi_on_words`: Okapi, which the paper names, on lower-case
    words as they stand.
    """

    bm25: Literal["plus_on_stems", "okapi_on_words"]

    async def rankings(self, rows: UnitRows, texts: Sequence[str]) -> list[list[RankedPage]]:
        # In a thread: for the tenths of a second that a book's index takes, no request is sent.
        return await to_thread(lambda: [self._ranked(rows, text) for text in texts])

    def _ranked(self, rows: UnitRows, text: str) -> list[RankedPage]:
        score = relevance if self.bm25 == "plus_on_stems" else relevance_by_words
        found = [row for row in rows.tables[self.reads[0]] if row.text is not None]
        scores = score([row.text for row in found], text)
        best: dict[int, float] = {}
        for place in best_first(scores):
            best.setdefault(found[place].page_index, float(scores[place]))
        return [RankedPage(page, score) for page, score in best.items()]


class ByVectors(RankedPages):
    """Base class: by the embeddings of the pages, gists or keys, made once for all questions."""

    # Not hashed here: the step of the embeddings names the model.
    embedder: EmbedderSettings = Field(exclude=True)

    async def rankings(self, rows: UnitRows, texts: Sequence[str]) -> list[list[RankedPage]]:
        vectors = await self.embedder.embed(texts, "query")
        return nearest(rows[Embedding], vectors) if texts else []


class BM25(ByBM25):
    """BM25 over the document's own pages (ReadAgent section 4.2)."""

    kind = "bm25"
    version = 1
    reads = (Page,)


class Dense(ByVectors):
    """The pages whose embeddings are nearest to the question's ("neural retrieval", section 4.2).
    The raw pages are read, whether they or their gists are embedded."""

    kind = "dense"
    version = 1
    reads = (Embedding,)


def nearest(rows: Sequence[Embedding], questions: Vectors) -> list[list[RankedPage]]:
    """For each question vector the pages, best first, by their best chunk's dot product.

    `questions`: (questions, dimensions). Ties go to the lower page; a page without an embedding
    comes last.
    """
    embedded = [row for row in rows if row.embedding is not None]
    best = np.full((1 + max((row.page_index for row in rows), default=-1), len(questions)), -np.inf)
    if embedded:
        chunks = np.array([row.embedding for row in embedded], dtype=np.float32)
        # Rounded so that equal texts tie: their vectors differ in the seventh digit by batch.
        near = np.round((chunks @ questions.T).astype(np.float64), 5)
        np.maximum.at(best, [row.page_index for row in embedded], near)
    orders = np.argsort(-best.T, axis=1, kind="stable")
    return [_with_scores(*found) for found in zip(orders.tolist(), best.T.tolist(), strict=True)]


def _with_scores(order: Sequence[int], scores: Sequence[float]) -> list[RankedPage]:
    return [RankedPage(n, scores[n] if isfinite(scores[n]) else None) for n in order]


class ChosenPages(LookUp):
    """Base class of baselines, which look for nothing; `top_k` as for `RankedPages`."""

    reads = (Page,)
    top_k: PositiveInt | None

    async def turns(self, rows: UnitRows, question: Question, ask: Ask) -> list[Lookup]:
        """One turn, best page first. No calls, no problems."""
        return [ranked_turn(question, self.ranking(rows[Page], question), self.top_k)]

    @abstractmethod
    def ranking(self, pages: Sequence[Page], question: Question) -> list[RankedPage]:
        """Pages, best first."""


class RandomPages(ChosenPages):
    """A lower baseline: pages drawn at random, seeded by (seed, question_id, repeat)."""

    kind = "random"
    version = 1
    seed: int
    repeat: int

    def ranking(self, pages: Sequence[Page], question: Question) -> list[RankedPage]:
        draw = random.Random(f"{self.seed}/{question.question_id}/{self.repeat}")
        return [RankedPage(index) for index in draw.sample(range(len(pages)), len(pages))]


class OraclePages(ChosenPages):
    """An upper bound: the pages with most gold evidence, scored by its characters. Skips questions
    without any."""

    kind = "oracle"
    version = 1
    question_fields = (*ASKED, *GOLD)

    async def turns(self, rows: UnitRows, question: Question, ask: Ask) -> list[Lookup]:
        if not question.evidence:
            return [replace(turn_row(question), skipped=True)]
        return await super().turns(rows, question, ask)

    def ranking(self, pages: Sequence[Page], question: Question) -> list[RankedPage]:
        spans = ([Span(page.start_char, page.end_char)] for page in pages)
        gold = np.array([covered_chars(question.evidence, s) for s in spans], dtype=np.float64)
        return [RankedPage(index, float(gold[index])) for index in best_first(gold) if gold[index]]


class LatestPages(ChosenPages):
    """The last pages of the document, as LongMemEval's full history keeps its latest sessions."""

    kind = "latest"
    version = 1

    def ranking(self, pages: Sequence[Page], question: Question) -> list[RankedPage]:
        return [RankedPage(page.page_index) for page in reversed(pages)]


class VisitedLeaves(LookUp):
    """One turn per question: the leaves visited are requested, the one that was answered from is
    used, those reverted from are dropped, reason rejected. No calls."""

    kind = "visited"
    version = 1
    reads = (Visit,)

    async def turns(self, rows: UnitRows, question: Question, ask: Ask) -> list[Lookup]:
        """Visits -> one turn. Problem: upstream (the navigation got no reply)."""
        visits = rows.of(Visit, question)
        if lost := lost_turn(question, visits):
            return [lost]
        at_leaves = [(v.page_index, v.action) for v in visits if v.page_index is not None]
        rejected = [Dropped(page, "rejected") for page, action in at_leaves if action == "revert"]
        return [
            replace(
                turn_row(question),
                requested=tuple(page for page, _ in at_leaves),
                used=tuple(page for page, action in at_leaves if action == "answer"),
                dropped=tuple(rejected),
            )
        ]
