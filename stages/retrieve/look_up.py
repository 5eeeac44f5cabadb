"""Base class of look-ups, which choose the pages to read for a question, and the look-ups that call
no model: none, BM25, dense, random, oracle and latest pages, visited leaves."""

import asyncio
import random
from abc import ABC, abstractmethod
from asyncio import to_thread
from collections.abc import Sequence
from itertools import zip_longest
from math import isfinite

import numpy as np
from pydantic import Field, PositiveInt

from pipeline.asking.ask import Ask
from pipeline.core.rows import Question, QuestionRow, Record, Span, UnitRows
from pipeline.engines.embedder import EmbedderSettings, Vectors
from pipeline.work.stage import ASKED, GOLD, Stage
from stages.tables.lookups import Dropped, Lookup, RankedPage, Visit
from stages.tables.pages import Embedding, Page
from stages.text.ranking import Ranking, best_first, ranking
from stages.text.words import covered_chars

RANKS_KEPT = 50  # of each turn: LongMemEval's metrics of retrieval look at no more


class LookUp(Stage, ABC):
    """Base class: writes a row per question and turn, turns counted from 0."""

    name = "look_up"
    writes = Lookup

    async def run(self, rows: UnitRows, ask: Ask) -> list[Lookup]:
        """Questions -> their Lookups, in question order, then by turn. Problems: see `turns`."""
        of_questions = await asyncio.gather(*(self.turns(rows, q, ask) for q in rows.questions))
        return [turn for turns in of_questions for turn in turns]

    async def turns(self, rows: UnitRows, question: Question, ask: Ask) -> list[Lookup]:
        """The look-up turns of one question; `used` is None where there was no reply."""
        return [Lookup.about(question)]

    def empty(self, rows: UnitRows, about: Record) -> Lookup:
        return Lookup.about(about, used=None)


def used_pages(rows: UnitRows, question: Question) -> list[int]:
    """The page indexes that a question's look-up used, in order of importance."""
    return [index for turn in rows.of(Lookup, question) for index in turn.used or ()]


def by_importance(rows: UnitRows, question: Question) -> list[int]:
    """The page indexes that a question's look-up used, in an order that favors no turn: the first
    request of each turn, then the second of each, and so on."""
    used = {*used_pages(rows, question)}
    ranks = zip_longest(*(turn.requested for turn in rows.of(Lookup, question)))
    return list(dict.fromkeys(page for rank in ranks for page in rank if page in used))


def why_upstream(rows: Sequence[QuestionRow]) -> str:
    """The reasons why rows cannot be used, as the `detail` of an `upstream` row; "" if all can."""
    return ", ".join(filter(None, (row.why_unusable() for row in rows)))


def lost_turn(question: Question, rests_on: Sequence[QuestionRow]) -> Lookup | None:
    """An `upstream` row as the question's only turn if any row of `rests_on` failed, else None."""
    if detail := why_upstream(rests_on):
        return Lookup.about(question, used=None, problem="upstream", detail=detail)
    return None


def ranked_turn(
    question: Question, ranking: Sequence[RankedPage], top_k: int | None, ranks: int = RANKS_KEPT
) -> Lookup:
    """A turn that requests and uses the best `top_k` pages of a ranking; None: all of it."""
    best = tuple(page.page_index for page in ranking[:top_k])
    return Lookup.about(question, requested=best, used=best, ranked=tuple(ranking[:ranks]))


class NoLookUp(LookUp):
    """For methods without look-ups: an empty turn 0. No calls."""

    kind = "none"
    version = 1


class RankedPages(LookUp):
    """Base class: ranks the pages and uses the best `top_k`. None: all; the answer is then made
    from the best that fit the context."""

    reads = (Page,)
    top_k: PositiveInt | None

    async def turns(self, rows: UnitRows, question: Question, ask: Ask) -> list[Lookup]:
        """One turn: the best `top_k` pages, best first. No calls, no problems."""
        best = [RankedPage(index) for index in self.best(rows[Page], question)]
        return [ranked_turn(question, best, self.top_k)]

    @abstractmethod
    def best(self, pages: Sequence[Page], question: Question) -> list[int]:
        """Page indexes, best first."""


class ByBM25(Stage):
    """Base class of stages that rank by BM25; by default plus_on_stems, since Okapi, which papers
    name, scores a word 0 that half of few pages contain."""

    bm25: Ranking

    async def rankings(self, rows: UnitRows, queries: Sequence[str]) -> list[list[RankedPage]]:
        """The pages for each query, best first."""
        texts = [(page.page_index, page.text or "") for page in rows[Page]]
        return await self.ranked(texts, queries)

    async def ranked(
        self, texts: Sequence[tuple[int, str]], queries: Sequence[str]
    ) -> list[list[RankedPage]]:
        """For each query the pages by the best of their `texts` (page index, text)."""
        pages, shown = [page for page, _ in texts], [text for _, text in texts]

        def pages_for(query: str) -> list[RankedPage]:
            best: dict[int, float] = {}
            for index, score in ranking(self.bm25, shown, query):
                best.setdefault(pages[index], score)
            return [RankedPage(page, score) for page, score in best.items()]

        # In a thread: a book's index takes tenths of a second, in which no request would be sent.
        return await to_thread(lambda: [pages_for(query) for query in queries])


class ByVectors(Stage):
    """Base class of stages that rank by embeddings."""

    # Not hashed here: the step of the embeddings names the model.
    embedder: EmbedderSettings = Field(exclude=True)

    async def rankings(self, rows: UnitRows, queries: Sequence[str]) -> list[list[RankedPage]]:
        return await self.ranked(rows[Embedding], queries)

    async def ranked(
        self, embeddings: Sequence[Embedding], queries: Sequence[str]
    ) -> list[list[RankedPage]]:
        return await to_thread(nearest, embeddings, await self.embedder.embed(queries, "query"))


class _Best(LookUp):
    top_k: PositiveInt | None

    @abstractmethod
    async def rankings(self, rows: UnitRows, queries: Sequence[str]) -> list[list[RankedPage]]: ...

    async def run(self, rows: UnitRows, ask: Ask) -> list[Lookup]:
        """Questions -> one turn each: the best `top_k` pages, best first. No calls, no problems."""
        rankings = await self.rankings(rows, [question.question for question in rows.questions])
        return [
            ranked_turn(question, ranking, self.top_k)
            for question, ranking in zip(rows.questions, rankings, strict=True)
        ]


class BM25(ByBM25, _Best):
    """BM25 over the document's own pages (ReadAgent section 4.2), as `ranking` has it."""

    kind = "bm25"
    version = 2
    reads = (Page,)


class Dense(ByVectors, _Best):
    """The pages whose embeddings are nearest to the question's ("neural retrieval", section 4.2).

    Pages or gists are embedded; the raw pages are read in both cases. `top_k` as for `RankedPages`.
    """

    kind = "dense"
    version = 1
    reads = (Embedding,)


def nearest(rows: Sequence[Embedding], questions: Vectors) -> list[list[RankedPage]]:
    """For each question vector, the pages by their best chunk's dot product, best first.

    `questions` has shape (questions, dimensions). Ties go to the lower page; a page without an
    embedding comes last.
    """
    embedded = [row for row in rows if row.embedding is not None]
    best = np.full((1 + max((row.page_index for row in rows), default=-1), len(questions)), -np.inf)
    if embedded:
        chunks = np.array([row.embedding for row in embedded], dtype=np.float32)
        # Rounded, as equal texts must tie: their vectors differ in the seventh digit by batch.
        near = np.round((chunks @ questions.T).astype(np.float64), 5)
        np.maximum.at(best, [row.page_index for row in embedded], near)
    orders = np.argsort(-best.T, axis=1, kind="stable")
    return [
        [RankedPage(n, scores[n] if isfinite(scores[n]) else None) for n in order]
        for order, scores in zip(orders.tolist(), best.T.tolist(), strict=True)
    ]


class RandomPages(RankedPages):
    """A lower baseline: pages drawn at random, seeded by (seed, question_id, repeat)."""

    kind = "random"
    version = 1
    seed: int
    repeat: int

    def best(self, pages: Sequence[Page], question: Question) -> list[int]:
        draw = random.Random(f"{self.seed}/{question.question_id}/{self.repeat}")
        return draw.sample(range(len(pages)), len(pages))


class OraclePages(LookUp):
    """An upper bound: the pages with most gold evidence, scored by its characters. Skips questions
    without any."""

    kind = "oracle"
    version = 1
    reads = (Page,)
    question_fields = (*ASKED, *GOLD)
    top_k: PositiveInt | None

    async def turns(self, rows: UnitRows, question: Question, ask: Ask) -> list[Lookup]:
        if not question.evidence:
            return [Lookup.about(question, skipped=True)]
        spans = ([Span(page.start_char, page.end_char)] for page in rows[Page])
        gold = np.array([covered_chars(question.evidence, s) for s in spans], dtype=np.float64)
        best = [RankedPage(index, float(gold[index])) for index in best_first(gold) if gold[index]]
        return [ranked_turn(question, best, self.top_k)]


class LatestPages(RankedPages):
    """The last pages of the document, as LongMemEval's full history keeps its latest sessions."""

    kind = "latest"
    version = 1

    def best(self, pages: Sequence[Page], question: Question) -> list[int]:
        return [page.page_index for page in reversed(pages)]


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
        leaves = [(v.page_index, v.action) for v in visits if v.page_index is not None]
        return [
            Lookup.about(
                question,
                requested=tuple(page for page, _ in leaves),
                used=tuple(page for page, action in leaves if action == "answer"),
                dropped=tuple(Dropped(page, "rejected") for page, act in leaves if act == "revert"),
            )
        ]
