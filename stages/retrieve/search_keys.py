"""Find the values of a chat by their keys, within a time range (LongMemEval sections 5.3, 5.4)."""

from abc import abstractmethod
from asyncio import to_thread
from collections import defaultdict
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Literal

from pydantic import Field, NonNegativeInt, PositiveInt

from pipeline.asking.ask import Ask
from pipeline.core.rows import Question, UnitRows
from pipeline.engines.embedder import EmbedderSettings
from stages.retrieve.look_up import LookUp, lost_turn, ranked_turn
from stages.retrieve.ranked_pages import Ranking, nearest
from stages.tables.keys import Embedding, Expansion, Key
from stages.tables.lookups import Lookup, Query, RankedPage
from stages.text.ranking import Scores, best_first, relevance, relevance_by_words

Days = defaultdict[int, set[str]]
"""The days of each page, as YYYY/MM/DD."""


class SearchKeys(LookUp):
    """Base class: ranks pages by their best key and uses the best `top_k`; None: all that have one.

    Where the question has a time range, made `widen_days` days longer at either end, pages of which
    no key and no event lies within it go to the end (`out_of_range: last`, as published) or are
    left out (`drop`). A page without a date is always within.
    """

    name = "search_keys"
    top_k: PositiveInt | None
    widen_days: NonNegativeInt
    out_of_range: Literal["last", "drop"]

    async def run(self, rows: UnitRows, ask: Ask) -> list[Lookup]:
        """Questions -> one turn each, best page first. No calls. Problem: upstream (a time range
        without a reply)."""
        days = _days(rows)
        ranked = await self.ranked(rows)
        return [
            self._turn(rows, question, best, days)
            for question, best in zip(rows.questions, ranked, strict=True)
        ]

    @abstractmethod
    async def ranked(self, rows: UnitRows) -> list[list[RankedPage]]:
        """For each question the pages that have a key, best first."""

    def _turn(
        self, rows: UnitRows, question: Question, best: Sequence[RankedPage], days: Days
    ) -> Lookup:
        if lost := lost_turn(question, rows.of(Query, question)):
            return lost
        first, last = _range(rows.of(Query, question), self.widen_days)
        is_within = [_is_within(days[page.page_index], first, last) for page in best]
        within = [page for page, is_in in zip(best, is_within, strict=True) if is_in]
        outside = [page for page, is_in in zip(best, is_within, strict=True) if not is_in]
        kept = [*within, *(outside if self.out_of_range == "last" else [])]
        return ranked_turn(question, kept, self.top_k)


class SearchKeysByBM25(SearchKeys):
    """By BM25 over all keys of the document; `bm25` as for the look-up of that name."""

    kind = "bm25"
    version = 1
    reads = (Key, Expansion, Query)
    bm25: Ranking

    async def ranked(self, rows: UnitRows) -> list[list[RankedPage]]:
        keys = [key for key in rows[Key] if key.text is not None]
        texts = [key.text or "" for key in keys]
        score = relevance if self.bm25 == "plus_on_stems" else relevance_by_words
        asked = [q.question for q in rows.questions]
        scores = await to_thread(lambda: [score(texts, question) for question in asked])
        return [_best_keys(keys, own) for own in scores]


class SearchKeysByVectors(SearchKeys):
    """By the embeddings of the keys."""

    kind = "dense"
    version = 1
    reads = (Key, Expansion, Embedding, Query)
    # Not hashed here: the step of the embeddings names the model.
    embedder: EmbedderSettings = Field(exclude=True)

    async def ranked(self, rows: UnitRows) -> list[list[RankedPage]]:
        asked = await self.embedder.embed([q.question for q in rows.questions], "query")
        return [
            [page for page in pages if page.score is not None]
            for pages in nearest(rows[Embedding], asked)
        ]


def _best_keys(keys: Sequence[Key], scores: Scores) -> list[RankedPage]:
    """The pages of these keys by their best one, best first; ties to the earlier."""
    best: dict[int, float] = {}
    for place in best_first(scores):
        best.setdefault(keys[place].page_index, float(scores[place]))
    return [RankedPage(page, score) for page, score in best.items()]


def _range(queries: Sequence[Query], widen_days: int) -> tuple[str | None, str | None]:
    """The first and the last day, as YYYY/MM/DD; None: without end."""
    found = [row for row in queries if row.kind == "time_range"]
    first, last = (found[0].start_date, found[0].end_date) if found else (None, None)
    return _moved(first, -widen_days), _moved(last, widen_days)


def _moved(day: str | None, days: int) -> str | None:
    """The day so many days later; None where the calendar has none."""
    if day is None:
        return None
    try:
        moved = date(*map(int, day.split("/"))) + timedelta(days=days)
    except OverflowError:
        return None
    return moved.isoformat().replace("-", "/")


def _days(rows: UnitRows) -> Days:
    """The days of each page's keys, and of its events."""
    days: Days = defaultdict(set)
    dated = [(row.page_index, row.day) for row in rows[Key]]
    dated += [(row.page_index, row.day) for row in rows[Expansion]]
    for page, day in dated:
        days[page] |= {day} if day else set()
    return days


def _is_within(days: set[str], first: str | None, last: str | None) -> bool:
    within = ((first is None or day >= first) and (last is None or day <= last) for day in days)
    return not days or any(within)
