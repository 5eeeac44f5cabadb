"""Find the values of a chat by their keys, within a time range (LongMemEval sections 5.3, 5.4)."""

from abc import abstractmethod
from asyncio import to_thread
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from itertools import accumulate, zip_longest
from typing import Literal

from pydantic import Field, NonNegativeInt, PositiveInt

from pipeline.asking.ask import Ask
from pipeline.core.rows import Question, UnitRows
from pipeline.engines.embedder import EmbedderSettings
from stages.retrieve.look_up import RANKS_KEPT, LookUp, lost_turn, nearest, ranked_turn
from stages.tables.keys import Embedding, Expansion, Key
from stages.tables.lookups import Lookup, Query, RankedPage
from stages.tables.pages import Page
from stages.text.ranking import Ranking, ranking
from stages.text.words import PAGE_BREAK, num_words


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
        ranked = [await self.ranked(rows, kind) for kind in self._kinds(rows)]
        return [
            self._turn(rows, question, _by_rank(own))
            for question, *own in zip(rows.questions, *ranked, strict=True)
        ]

    @abstractmethod
    async def ranked(self, rows: UnitRows, kind: str | None) -> list[list[RankedPage]]:
        """For each question the pages with a key of the kind (None: any), best first."""

    def _kinds(self, rows: UnitRows) -> list[str | None]:
        """The kinds of keys that have a ranking of their own, the values' first."""
        of_pages = {(key.page_index, key.kind) for key in rows[Key]}
        has_several = len(of_pages) > len({page for page, _ in of_pages})
        if self.merge == "score" or not has_several:
            return [None]
        return sorted({kind for _, kind in of_pages}, key=lambda kind: kind != "value")

    def _turn(self, rows: UnitRows, question: Question, best: Sequence[RankedPage]) -> Lookup:
        if lost := lost_turn(question, rows.of(Query, question)):
            return lost
        first, last = _range(rows.of(Query, question), self.widen_days)
        is_within = _within_events if self.dated_by == "events" else _within_any
        pages = is_within(rows, first, last) if first or last else {p.page_index for p in best}
        within = [page for page in best if page.page_index in pages]
        outside = [page for page in best if page.page_index not in pages]
        kept = [*within, *(outside if self.out_of_range == "last" else [])]
        return ranked_turn(question, kept, self.top_k, _ranks_kept(rows, kept))


class SearchKeysByBM25(SearchKeys):
    """By BM25 over all keys of the document; `bm25` as for the look-up of that name."""

    kind = "bm25"
    version = 4
    reads = (Page, Key, Expansion, Query)
    bm25: Ranking

    async def ranked(self, rows: UnitRows, kind: str | None) -> list[list[RankedPage]]:
        keys = [key for key in rows[Key] if key.text is not None and kind in (None, key.kind)]
        texts = [key.text or "" for key in keys]
        asked = [q.question for q in rows.questions]
        found = await to_thread(lambda: [ranking(self.bm25, texts, query) for query in asked])
        return [_best_keys([(keys[n].page_index, score) for n, score in own]) for own in found]


class SearchKeysByVectors(SearchKeys):
    """By the embeddings of the keys."""

    kind = "dense"
    version = 4
    reads = (Page, Key, Expansion, Embedding, Query)
    # Not hashed here: the step of the embeddings names the model.
    embedder: EmbedderSettings = Field(exclude=True)

    async def ranked(self, rows: UnitRows, kind: str | None) -> list[list[RankedPage]]:
        asked = await self.embedder.embed([q.question for q in rows.questions], "query")
        of_kind = rows[Embedding] if kind is None else _vectors_of(rows, kind)
        found = await to_thread(nearest, of_kind, asked)
        return [[page for page in pages if page.score is not None] for pages in found]


def _best_keys(ranked: Iterable[tuple[int, float]]) -> list[RankedPage]:
    best: dict[int, float] = {}
    for page, score in ranked:
        best.setdefault(page, score)
    return [RankedPage(page, score) for page, score in best.items()]


def _by_rank(rankings: Sequence[Sequence[RankedPage]]) -> list[RankedPage]:
    """Each page at its best place in any ranking; ties go to the earlier ranking."""
    found: dict[int, RankedPage] = {}
    for pages in zip_longest(*rankings):
        for page in filter(None, pages):
            found.setdefault(page.page_index, page)
    return list(found.values())


def _vectors_of(rows: UnitRows, kind: str) -> list[Embedding]:
    """The vectors of the keys of this kind; each key with words has one, in the same order."""
    of_kind: set[tuple[int, int]] = set()
    numbers: defaultdict[int, int] = defaultdict(int)
    for key in (key for key in rows[Key] if num_words(key.text or "")):
        if key.kind == kind:
            of_kind.add((key.page_index, numbers[key.page_index]))
        numbers[key.page_index] += 1
    return [row for row in rows[Embedding] if (row.page_index, row.chunk_index) in of_kind]


def _range(queries: Sequence[Query], widen_days: int) -> tuple[str | None, str | None]:
    """The first and last day, as YYYY/MM/DD; None: open."""
    found = [row for row in queries if row.kind == "time_range"]
    first, last = (found[0].start_date, found[0].end_date) if found else (None, None)
    return _moved(first, -widen_days), _moved(last, widen_days)


def _moved(day: str | None, days: int) -> str | None:
    """The day `days` later; None if the calendar has none."""
    if day is None:
        return None
    try:
        moved = date(*map(int, day.split("/"))) + timedelta(days=days)
    except OverflowError:
        return None
    return moved.isoformat().replace("-", "/")


def _within_events(rows: UnitRows, first: str | None, last: str | None) -> set[int]:
    session_of = _sessions(rows[Page])
    events = [row for row in rows[Expansion] if row.kind == "event" and row.text is not None]
    within = {session_of[row.page_index] for row in events if _is_in(row.day, first, last)}
    return {n for n, session in enumerate(session_of) if session in within}


def _sessions(pages: Sequence[Page]) -> list[int]:
    """The session number of each page, from 1; 0 where the document has no sessions."""
    return list(accumulate(int((page.text or "").startswith(PAGE_BREAK)) for page in pages))


def _ranks_kept(rows: UnitRows, ranking: Sequence[RankedPage]) -> int:
    """50; for a chat as many as cover 50 sessions, for metrics of sessions."""
    session_of = _sessions(rows[Page])
    seen: set[int] = set()
    for rank, page in enumerate(ranking, 1):
        seen.add(session_of[page.page_index])
        if rank >= RANKS_KEPT and (len(seen) >= RANKS_KEPT or not session_of[-1]):
            return rank
    return len(ranking)


def _within_any(rows: UnitRows, first: str | None, last: str | None) -> set[int]:
    """The pages with a key or an event dated in the range, and those without any date."""
    dated = [(row.page_index, row.day) for row in rows[Key] if row.day]
    dated += [(row.page_index, row.day) for row in rows[Expansion] if row.day]
    undated = {row.page_index for row in rows[Key]} - {page for page, _ in dated}
    return undated | {page for page, day in dated if _is_in(day, first, last)}


def _is_in(day: str | None, first: str | None, last: str | None) -> bool:
    return day is not None and (first is None or day >= first) and (last is None or day <= last)
