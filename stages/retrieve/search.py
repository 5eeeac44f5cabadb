"""Search a document's pages by all queries of a question at once (MemoRAG section 2.1), or the
values of a chat by their keys, within a time range (LongMemEval sections 5.3 and 5.4)."""

from abc import abstractmethod
from asyncio import to_thread
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from itertools import accumulate, islice, zip_longest
from typing import Any, Literal

import numpy as np
from pydantic import NonNegativeInt, PositiveInt

from pipeline.asking.ask import Ask
from pipeline.core.rows import Question, UnitRows
from pipeline.engines.embedder import Kind
from stages.query.make_queries import searched
from stages.retrieve.look_up import (
    RANKS_KEPT,
    ByBM25,
    ByVectors,
    LookUp,
    lost_turn,
    nearest,
    ranked_turn,
)
from stages.tables.lookups import Dropped, Lookup, Query, RankedPage
from stages.tables.pages import Embedding, Expansion, Key, Page
from stages.text.words import PAGE_BREAK, num_words


class Search(LookUp):
    """Base class: each query's turn requests its best `top_k` pages (None: all) and uses those that
    no earlier query found; the others are dropped, reason duplicate.

    A page without a vector is not found, nor is one that scores 0 for a query, except for the
    question itself, as in look-ups of pages. With `mean` all queries of a question are searched for
    as one, in a single turn.
    """

    name = "search"
    top_k: PositiveInt | None
    mean: bool

    async def run(self, rows: UnitRows, ask: Ask) -> list[Lookup]:
        """Questions -> their turns. No calls. Problem: upstream (a query without a reply)."""
        groups: list[tuple[Question, list[Query]]] = []  # of queries that are searched for as one
        for question in rows.questions:
            queries = searched(rows, question)
            parts = [queries] if self.mean and queries else [[query] for query in queries]
            groups += [(question, part) for part in parts]
        rankings = await self.rankings_of(rows, [group for _, group in groups]) if groups else []
        turns: dict[str, list[Lookup]] = defaultdict(list)
        for (question, group), ranking in zip(groups, rankings, strict=True):
            is_by_question = any(query.kind == "question" for query in group)
            matching = [page for page in ranking
                        if page.score or (is_by_question and page.score is not None)]  # fmt: skip
            turn = ranked_turn(question, matching, self.top_k)
            number = None if self.mean else group[0].query_index
            turns[question.question_id].append(replace(turn, query_index=number))
        lookups: list[Lookup] = []
        for question in rows.questions:
            lost = lost_turn(question, rows.of(Query, question))
            numbered = [lost] if lost else _each_page_once(turns[question.question_id])
            lookups += numbered or [Lookup.about(question)]
        return lookups

    @abstractmethod
    async def rankings_of(
        self, rows: UnitRows, groups: Sequence[Sequence[Query]]
    ) -> list[list[RankedPage]]:
        """The pages for each group of queries, best first."""


def _each_page_once(turns: Sequence[Lookup]) -> list[Lookup]:
    """The turns, numbered; each uses the pages that no earlier turn requested."""
    numbered: list[Lookup] = []
    seen: set[int] = set()
    for turn in turns:
        used = tuple(page for page in turn.requested if page not in seen)
        dropped = tuple(Dropped(page, "duplicate") for page in turn.requested if page in seen)
        numbered.append(replace(turn, turn=len(numbered), used=used, dropped=dropped))
        seen.update(turn.requested)
    return numbered


class SearchByBM25(ByBM25, Search):
    """By BM25 over the pages; `bm25` as for the look-up of that name. With `mean` the texts of all
    queries are one."""

    kind = "bm25"
    version = 4
    reads = (Page, Query)

    async def rankings_of(
        self, rows: UnitRows, groups: Sequence[Sequence[Query]]
    ) -> list[list[RankedPage]]:
        texts = [" ".join(query.text or "" for query in group) for group in groups]
        return await self.rankings(rows, texts)


class SearchByVectors(ByVectors, Search):
    """By the embeddings of the pages, made once for all questions; a page's best chunk counts. A
    hypothetical passage is embedded as pages are, other queries as questions. With `mean` pages are
    compared with the mean of the vectors of all queries."""

    kind = "dense"
    version = 3
    reads = (Embedding, Query)

    async def rankings_of(
        self, rows: UnitRows, groups: Sequence[Sequence[Query]]
    ) -> list[list[RankedPage]]:
        queries = [query for group in groups for query in group]
        vectors: list[Any] = [None] * len(queries)
        kinds: tuple[Kind, ...] = ("document", "query")
        for kind in kinds:
            chosen = [n for n, query in enumerate(queries)
                      if (query.kind == "hypothetical") == (kind == "document")]  # fmt: skip
            texts = [queries[n].text or "" for n in chosen]
            for n, vector in zip(chosen, await self.embedder.embed(texts, kind), strict=True):
                vectors[n] = vector
        in_order = iter(vectors)
        means = [np.mean(list(islice(in_order, len(group))), axis=0) for group in groups]
        return await to_thread(nearest, rows[Embedding], np.array(means, dtype=np.float32))


class SearchKeys(LookUp):
    """Base class: ranks pages by their best key and uses the best `top_k`; None: all that have a
    key.

    `merge` score: all keys are one ranking. rank: each kind of key has a ranking, and a page has
    its best place in any of them (appendix E.3); if no page has keys of several kinds, all keys are
    one ranking. Pages outside the question's time range, made `widen_days` longer at either end, go
    to the end (`out_of_range: last`, as published) or are left out (`drop`). `dated_by` events: a
    page is within the range if an event of its session was dated in it (the authors'
    temp_query_search_pruning.py). any: also if the day of one of its keys, such as the session's,
    is in the range, or if the page has no date.
    """

    name = "search_keys"
    top_k: PositiveInt | None
    merge: Literal["score", "rank"]
    widen_days: NonNegativeInt
    out_of_range: Literal["last", "drop"]
    dated_by: Literal["events", "any"]

    async def run(self, rows: UnitRows, ask: Ask) -> list[Lookup]:
        """Questions -> one turn each, best page first. No calls. Problem: upstream (a time range
        without a reply)."""
        kinds: list[str | None] = [None]
        of_pages = {(key.page_index, key.kind) for key in rows[Key]}
        if self.merge == "rank" and len(of_pages) > len({page for page, _ in of_pages}):
            kinds = sorted({kind for _, kind in of_pages}, key=lambda kind: kind != "value")
        ranked = [await self.by_keys(rows, kind) for kind in kinds]
        return [
            self._turn(rows, question, rankings)
            for question, *rankings in zip(rows.questions, *ranked, strict=True)
        ]

    @abstractmethod
    async def by_keys(self, rows: UnitRows, kind: str | None) -> list[list[RankedPage]]:
        """For each question the pages with a key of the kind (None: any), best first."""

    def _turn(
        self, rows: UnitRows, question: Question, rankings: Sequence[Sequence[RankedPage]]
    ) -> Lookup:
        queries = rows.of(Query, question)
        if lost := lost_turn(question, queries):
            return lost
        # Each page at its best place in any ranking; ties go to the earlier ranking.
        best: dict[int, RankedPage] = {}
        for pages in zip_longest(*rankings):
            for page in filter(None, pages):
                best.setdefault(page.page_index, page)
        # The number of each page's session, from 1; 0 where the document has none.
        begins = ((page.text or "").startswith(PAGE_BREAK) for page in rows[Page])
        sessions = list(accumulate(map(int, begins)))
        within = {*best}
        limits = next((row for row in queries if row.kind == "time_range"), None)
        if limits is not None:
            first = _moved(limits.start_date, -self.widen_days)
            last = _moved(limits.end_date, self.widen_days)
            if first or last:
                within = self._within(rows, sessions, first or "", last or "9999/99/99")
        ranking = [page for index, page in best.items() if index in within]
        if self.out_of_range == "last":
            ranking += [page for index, page in best.items() if index not in within]
        # 50 ranks are kept; for a chat as many as cover 50 sessions, for metrics of sessions.
        ranks, seen = len(ranking), set[int]()
        for rank, page in enumerate(ranking, 1):
            seen.add(sessions[page.page_index])
            if rank >= RANKS_KEPT and (len(seen) >= RANKS_KEPT or not sessions[-1]):
                ranks = rank
                break
        return ranked_turn(question, ranking, self.top_k, ranks)

    def _within(self, rows: UnitRows, sessions: Sequence[int], first: str, last: str) -> set[int]:
        """The pages within the days, see `dated_by`."""
        if self.dated_by == "events":
            in_range = {
                sessions[row.page_index]
                for row in rows[Expansion]
                if row.kind == "event" and row.text is not None
                and row.day and first <= row.day <= last
            }  # fmt: skip
            return {page for page, session in enumerate(sessions) if session in in_range}
        days = [(row.page_index, row.day) for row in rows[Key]]
        days += [(row.page_index, row.day) for row in rows[Expansion]]
        inside = {page for page, day in days if day and first <= day <= last}
        undated = {row.page_index for row in rows[Key]} - {page for page, day in days if day}
        return undated | inside


def _moved(day: str | None, days: int) -> str | None:
    """The day, YYYY/MM/DD, `days` later; None if the calendar has none."""
    if day is None:
        return None
    try:
        moved = date(*map(int, day.split("/"))) + timedelta(days=days)
    except OverflowError:
        return None
    return moved.isoformat().replace("-", "/")


class SearchKeysByBM25(ByBM25, SearchKeys):
    """By BM25 over all keys of the document; `bm25` as for the look-up of that name."""

    kind = "bm25"
    version = 4
    reads = (Page, Key, Expansion, Query)

    async def by_keys(self, rows: UnitRows, kind: str | None) -> list[list[RankedPage]]:
        texts = [(key.page_index, key.text) for key in rows[Key]
                 if key.text is not None and kind in (None, key.kind)]  # fmt: skip
        return await self.ranked(texts, [question.question for question in rows.questions])


class SearchKeysByVectors(ByVectors, SearchKeys):
    """By the embeddings of the keys."""

    kind = "dense"
    version = 4
    reads = (Page, Key, Expansion, Embedding, Query)

    async def by_keys(self, rows: UnitRows, kind: str | None) -> list[list[RankedPage]]:
        vectors: Sequence[Embedding] = rows[Embedding]
        if kind is not None:  # each key with words has a vector, in the same order
            numbers = Counter[int]()
            of_kind: set[tuple[int, int]] = set()
            for key in (key for key in rows[Key] if num_words(key.text or "")):
                if key.kind == kind:
                    of_kind.add((key.page_index, numbers[key.page_index]))
                numbers[key.page_index] += 1
            vectors = [row for row in vectors if (row.page_index, row.chunk_index) in of_kind]
        rankings = await self.ranked(vectors, [q.question for q in rows.questions])
        return [[page for page in pages if page.score is not None] for pages in rankings]
