"""Pages nearest to any query of a question (MemoRAG section 2.1)."""

from abc import ABC
from asyncio import to_thread
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from pydantic import Field, PositiveInt

from pipeline.asking.ask import Ask
from pipeline.core.rows import Question, UnitRows
from pipeline.engines.embedder import EmbedderSettings, Kind, Vectors
from stages.query.make_queries import searched
from stages.retrieve.look_up import (
    LookUp,
    by_bm25,
    each_page_once,
    lost_turn,
    nearest,
    ranked_turn,
    turn_row,
)
from stages.tables.keys import Embedding
from stages.tables.lookups import Lookup, Query, RankedPage
from stages.tables.pages import Page
from stages.text.ranking import Ranking


class Search(LookUp, ABC):
    """Base class: a turn per query, which requests its best `top_k` pages (None: all) and uses
    those that no earlier query found; the others are dropped, reason duplicate. So the pages used
    are those of all queries, each once. A page without a vector, and what shares nothing with a
    query (score 0), is not found; by the question itself the latter is, as it is by the look-ups of
    pages. With `mean` all queries of a question are searched for as one, in a single turn.
    """

    name = "search"
    top_k: PositiveInt | None
    mean: bool

    def found(
        self, rows: UnitRows, question: Question, rankings: Sequence[Sequence[RankedPage]]
    ) -> list[Lookup]:
        """The turns of one question; `rankings`: the pages of each query, best first, or with
        `mean` of all together."""
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
        """A vector per query, in order."""
        is_passage = np.array([query.kind == "hypothetical" for query in queries], dtype=bool)
        texts = np.array([query.text for query in queries], dtype=object)
        found: list[Any] = [None] * len(queries)
        kinds: dict[Kind, Any] = {"document": is_passage, "query": ~is_passage}
        for kind, chosen in kinds.items():
            vectors = await self.embedder.embed(list(texts[chosen]), kind)
            for place, vector in zip(np.flatnonzero(chosen), vectors, strict=True):
                found[place] = vector
        return np.array(found, dtype=np.float32)
