"""Search a document's pages by all queries of a question at once (MemoRAG section 2.1), or by one
query after another, each made from the pages found before (RQ-RAG's loop of retrieving and
refining, arXiv 2404.00610, section 2.3, here by a prompt)."""

import asyncio
from abc import ABC, abstractmethod
from asyncio import to_thread
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from pydantic import Field, PositiveInt

from pipeline.asking.ask import Ask
from pipeline.core.calls import Subject
from pipeline.core.rows import Question, UnitRows
from pipeline.engines.embedder import EmbedderSettings, Kind, Vectors
from pipeline.work.stage import Stage
from stages.index.context import raw_pages
from stages.prompts.memorag import ACTIONS, Action, RefineQuery
from stages.query.make_queries import searched
from stages.retrieve.look_up import (
    RANKS_KEPT,
    LookUp,
    by_bm25,
    each_page_once,
    lost_turn,
    nearest,
    ranked_turn,
    turn_row,
)
from stages.tables.keys import Embedding
from stages.tables.lookups import Lookup, Query, RankedPage, Refinement
from stages.tables.pages import Page
from stages.text.ranking import Ranking


class Search(LookUp, ABC):
    """Base class: each query's turn requests its best `top_k` pages (None: all) and uses those that
    no earlier query found; the others are dropped, reason duplicate.

    A page without a vector is not found, nor is one that scores 0 for a query, except for the
    question itself, as in look-ups of pages. With `mean` all queries of a question are searched for
    as one, in a single turn.
    """

    name = "search"
    top_k: PositiveInt | None
    mean: bool

    def found(
        self, rows: UnitRows, question: Question, rankings: Sequence[Sequence[RankedPage]]
    ) -> list[Lookup]:
        """The turns of one question. `rankings` has the pages of each query, best first, or with
        `mean` one ranking of all queries."""
        if lost := lost_turn(question, rows.of(Query, question)):
            return [lost]
        if self.mean:
            matching = [_matching(searched(rows, question), own) for own in rankings]
            return [ranked_turn(question, own, self.top_k) for own in matching] or [
                turn_row(question)
            ]
        turns = [
            replace(
                ranked_turn(question, _matching([query], ranking), self.top_k),
                query_index=query.query_index,
            )
            for query, ranking in zip(searched(rows, question), rankings, strict=True)
        ]
        return each_page_once(question, turns)


def _matching(queries: Sequence[Query], ranking: Sequence[RankedPage]) -> list[RankedPage]:
    found = [page for page in ranking if page.score is not None]
    is_by_question = any(query.kind == "question" for query in queries)
    return found if is_by_question else [page for page in found if page.score]


class SearchByBM25(Search):
    """By BM25 over the pages; `bm25` as for the look-up of that name. With `mean` the texts of all
    queries are one."""

    kind = "bm25"
    version = 4
    reads = (Page, Query)
    bm25: Ranking

    async def run(self, rows: UnitRows, ask: Ask) -> list[Lookup]:
        """Questions -> their turns. No calls. Problem: upstream (a query without a reply)."""
        return await to_thread(self._run, rows)  # as the look-up of that name

    def _run(self, rows: UnitRows) -> list[Lookup]:
        made: list[Lookup] = []
        for question in rows.questions:
            texts = [query.text or "" for query in searched(rows, question)]
            texts = [" ".join(texts)] if self.mean and texts else texts
            rankings = [by_bm25(self.bm25, rows[Page], text) for text in texts]
            made += self.found(rows, question, rankings)
        return made


class SearchByVectors(Search):
    """By the embeddings of the pages, made once for all questions; a page's best chunk counts. A
    hypothetical passage is embedded as pages are, other queries as questions. With `mean` it is the
    mean of the vectors of all queries that pages are compared with."""

    kind = "dense"
    version = 3
    reads = (Embedding, Query)
    # Not hashed here: the step of the embeddings names the model.
    embedder: EmbedderSettings = Field(exclude=True)

    async def run(self, rows: UnitRows, ask: Ask) -> list[Lookup]:
        """Questions -> their turns. No calls. Problem: upstream (a query without a reply)."""
        own = [searched(rows, question) for question in rows.questions]
        vectors = await self._vectors([query for queries in own for query in queries])
        if self.mean:
            sizes = np.cumsum([len(queries) for queries in own])[:-1]
            means = [part.mean(axis=0) for part in np.split(vectors, sizes) if len(part)]
            vectors = np.array(means, dtype=np.float32)
        rankings = iter(await to_thread(nearest, rows[Embedding], vectors) if len(vectors) else [])
        made: list[Lookup] = []
        for question, queries in zip(rows.questions, own, strict=True):
            num = min(len(queries), 1) if self.mean else len(queries)
            made += self.found(rows, question, [next(rankings) for _ in range(num)])
        return made

    async def _vectors(self, queries: Sequence[Query]) -> Vectors:
        is_passage = np.array([query.kind == "hypothetical" for query in queries], dtype=bool)
        texts = np.array([query.text for query in queries], dtype=object)
        found: list[Any] = [None] * len(queries)
        kinds: dict[Kind, Any] = {"document": is_passage, "query": ~is_passage}
        for kind, chosen in kinds.items():
            vectors = await self.embedder.embed(list(texts[chosen]), kind)
            for place, vector in zip(np.flatnonzero(chosen), vectors, strict=True):
                found[place] = vector
        return np.array(found, dtype=np.float32)


class Refine(Stage):
    """Base class: a question has one trajectory for each of the paper's actions on it: rewrite,
    decompose and disambiguate.

    A trajectory searches for the query that its action gives. The model is then shown the best
    `top_k` pages of every query so far and asked for the next query, until it finds these pages
    enough or `steps` queries were made. The paper's trained model may take any action at every
    step; here only first steps take one, so there are 3 trajectories, not 3 to the power of the
    steps.
    """

    name = "refine"
    writes = Refinement
    prompts = (RefineQuery,)
    asks_in_turn = True
    top_k: PositiveInt
    steps: PositiveInt

    async def run(self, rows: UnitRows, ask: Ask) -> list[Refinement]:
        """Questions -> their Refinements, in question order, then by trajectory and step; calls of
        a trajectory are sequential. Problems: truncated, unparseable (the trajectory ends there);
        context_overflow, after which a later step ends it, too; timeout, refused, engine_failed.
        """
        made = await asyncio.gather(*(self._question(rows, q, ask) for q in rows.questions))
        return [row for found in made for row in found]

    async def _question(self, rows: UnitRows, question: Question, ask: Ask) -> list[Refinement]:
        walks = (self._trajectory(rows, question, n, ask) for n in range(len(ACTIONS)))
        found = [row for rows_of in await asyncio.gather(*walks) for row in rows_of]
        return [replace(row, turn=turn) for turn, row in enumerate(found)]

    async def _trajectory(
        self, rows: UnitRows, question: Question, number: int, ask: Ask
    ) -> list[Refinement]:
        made: list[Refinement] = []
        for step in range(self.steps):
            action = ACTIONS[number] if step == 0 else None
            prompt = self._prompt(rows, question, made, action)
            turn = number * self.steps + step
            asked = await ask(prompt, Subject(question_id=question.question_id, turn=turn))
            row = Refinement.about(question, turn=turn, trajectory=number, action=action)
            row = replace(row, text=asked.value, problem=asked.problem)
            seen = {page for one in made for page in one.used}
            ranked = await self.search(rows, asked.value) if asked.value else []
            best = [page.page_index for page in ranked[: self.top_k]]
            used = tuple(page for page in best if page not in seen)
            made.append(replace(row, ranked=tuple(ranked[:RANKS_KEPT]), used=used))
            if not asked.value:
                break
        return made

    def _prompt(
        self,
        rows: UnitRows,
        question: Question,
        made: Sequence[Refinement],
        action: Action | None,
    ) -> RefineQuery:
        used = [page for row in made for page in row.used]
        passages = raw_pages(rows, used, first_page=0).passages
        return RefineQuery(
            passages=tuple(replace(passage, page_number=None) for passage in passages),
            question=question.question,
            options=question.options,
            queries=tuple(row.text for row in made if row.text),
            action=action,
            asked_at=question.asked_at or "",
        )

    @abstractmethod
    async def search(self, rows: UnitRows, query: str) -> list[RankedPage]:
        """The pages, best first, without those that match nothing."""


class RefineByBM25(Refine):
    """By BM25 over the pages; `bm25` as for the look-up of that name."""

    kind = "bm25"
    version = 2
    reads = (Page,)
    bm25: Ranking

    async def search(self, rows: UnitRows, query: str) -> list[RankedPage]:
        found = await to_thread(by_bm25, self.bm25, rows[Page], query)
        return [page for page in found if page.score]


class RefineByVectors(Refine):
    """By the embeddings of the pages."""

    kind = "dense"
    version = 1
    reads = (Page, Embedding)
    # Not hashed here: the step of the embeddings names the model.
    embedder: EmbedderSettings = Field(exclude=True)

    async def search(self, rows: UnitRows, query: str) -> list[RankedPage]:
        asked = await self.embedder.embed([query], "query")
        (found,) = await to_thread(nearest, rows[Embedding], asked)
        return [page for page in found if page.score is not None]


def needed_steps(steps: Sequence[Refinement]) -> list[Refinement]:
    """The steps without which a question cannot be answered: not later ones that outgrew the
    context, as the first step of their trajectory has found pages."""
    return [step for step in steps if step.action or step.problem != "context_overflow"]


class RefinedLookUp(LookUp):
    """A turn for each query of a refine stage; a page that an earlier one found is used once. No
    calls."""

    kind = "refined"
    version = 1
    reads = (Refinement,)

    async def turns(self, rows: UnitRows, question: Question, ask: Ask) -> list[Lookup]:
        """Problem: upstream (a query without a reply)."""
        steps = rows.of(Refinement, question)
        if lost := lost_turn(question, needed_steps(steps)):
            return [lost]
        empty = turn_row(question)
        turns = (replace(empty, requested=s.used, ranked=s.ranked) for s in steps if s.text)
        return each_page_once(question, turns)
