"""Search a document's pages by all queries of a question at once (MemoRAG section 2.1); by one
query after another, each made from the pages found before (RQ-RAG's loop of retrieving and
refining, arXiv 2404.00610, section 2.3, here by a prompt); or the values of a chat by their keys,
within a time range (LongMemEval sections 5.3 and 5.4)."""

import asyncio
from abc import abstractmethod
from asyncio import to_thread
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from itertools import accumulate, chain, groupby, islice, zip_longest
from typing import Any, Literal

import numpy as np
from pydantic import NonNegativeInt, PositiveInt

from pipeline.asking.ask import Ask
from pipeline.core.calls import Subject
from pipeline.core.rows import Question, UnitRows
from pipeline.engines.embedder import Kind
from stages.index.context import fields_of, raw_pages
from stages.prompts.answer import shown
from stages.prompts.memorag import ACTIONS, RefineQuery
from stages.query.make_queries import searched
from stages.retrieve.look_up import (
    RANKS_KEPT,
    ByBM25,
    ByRanking,
    ByVectors,
    LookUp,
    each_page_once,
    lost_turn,
    nearest,
    ranked_turn,
)
from stages.tables.keys import Embedding, Expansion, Key
from stages.tables.lookups import Lookup, Query, RankedPage, Refinement
from stages.tables.pages import Page
from stages.text.words import PAGE_BREAK, num_words


class Search(ByRanking, LookUp):
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
            lookups += [lost] if lost else each_page_once(question, turns[question.question_id])
        return lookups

    @abstractmethod
    async def rankings_of(
        self, rows: UnitRows, groups: Sequence[Sequence[Query]]
    ) -> list[list[RankedPage]]:
        """The pages for each group of queries, best first."""


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
    hypothetical passage is embedded as pages are, other queries as questions. With `mean` it is the
    mean of the vectors of all queries that pages are compared with."""

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
        left = iter(vectors)
        means = [np.mean(list(islice(left, len(group))), axis=0) for group in groups]
        return await to_thread(nearest, rows[Embedding], np.array(means, dtype=np.float32))


class Refine(ByRanking):
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
        trajectories = await asyncio.gather(*(
            self._trajectory(rows, question, number, ask)
            for question in rows.questions for number in range(len(ACTIONS))
        ))  # fmt: skip
        of_questions = groupby(chain.from_iterable(trajectories), lambda row: row.question_id)
        return [replace(row, turn=n) for _, steps in of_questions for n, row in enumerate(steps)]

    async def _trajectory(
        self, rows: UnitRows, question: Question, number: int, ask: Ask
    ) -> list[Refinement]:
        steps: list[Refinement] = []
        used: list[int] = []
        for step in range(self.steps):
            action = ACTIONS[number] if step == 0 else None
            prompt = RefineQuery(
                passages=shown(raw_pages(rows, used, first_page=0).passages, with_numbers=False),
                **fields_of(question),
                queries=tuple(row.text for row in steps if row.text),
                action=action,
            )
            turn = number * self.steps + step
            reply = await ask(prompt, Subject(question_id=question.question_id, turn=turn))
            rankings = await self.rankings(rows, [reply.value]) if reply.value else [[]]
            ranked = [page for page in rankings[0] if page.score not in (None, self.no_match)]
            best = [page.page_index for page in ranked[: self.top_k]]
            new = tuple(page for page in best if page not in used)
            row = Refinement.about(
                question, turn=turn, trajectory=number, action=action, text=reply.value,
                problem=reply.problem, ranked=tuple(ranked[:RANKS_KEPT]), used=new,
            )  # fmt: skip
            steps.append(row)
            used += new
            if not reply.value:
                break
        return steps


class RefineByBM25(ByBM25, Refine):
    """By BM25 over the pages; `bm25` as for the look-up of that name."""

    kind = "bm25"
    version = 2
    reads = (Page,)


class RefineByVectors(ByVectors, Refine):
    """By the embeddings of the pages."""

    kind = "dense"
    version = 1
    reads = (Page, Embedding)


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
        turns = [Lookup.about(question, requested=step.used, ranked=step.ranked)
                 for step in steps if step.text]  # fmt: skip
        return each_page_once(question, turns)


class SearchKeys(LookUp):
    """Base class: ranks pages by their best key and uses the best `top_k`; None: all that have a
    key.

    `merge` score: all keys are one ranking. rank: each kind of key has a ranking, and a page has
    its best place in any (appendix E.3), where some page has keys of several kinds; else all are
    one ranking. Pages outside the question's time range, made `widen_days` longer at either end, go
    to the end (`out_of_range: last`, as published) or are left out (`drop`). `dated_by` events:
    pages are within it if an event of their session was dated in it (the authors'
    temp_query_search_pruning.py). any: also if a key's day, such as the session's, is in it, or the
    page has no date.
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
