"""Find the values of a chat by their keys, within a time range (LongMemEval sections 5.3, 5.4)."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Literal

from pydantic import NonNegativeInt

from pipeline.core.rows import Question, UnitRows
from stages.retrieve.look_up import lost_turn, ranked_turn
from stages.retrieve.ranked_pages import ByBM25, ByVectors, RankedPages
from stages.tables.keys import Embedding, Expansion, Key
from stages.tables.lookups import Lookup, Query, RankedPage

Days = defaultdict[int, set[str]]
"""The days of each page, as YYYY/MM/DD."""


class SearchKeys(RankedPages):
    """Base class: ranks pages by their best key and uses the best `top_k`; None: all that have one.

    Where the question has a time range, made `widen_days` days longer at either end, pages of which
    no key and no event lies within it go to the end (`out_of_range: last`, as published) or are
    left out (`drop`). A page without a date is always within.
    """

    name = "search_keys"
    widen_days: NonNegativeInt
    out_of_range: Literal["last", "drop"]

    def found(
        self, rows: UnitRows, question: Question, rankings: Sequence[Sequence[RankedPage]]
    ) -> list[Lookup]:
        """One turn, best page first. Problem: upstream (a time range without a reply)."""
        if lost := lost_turn(question, rows.of(Query, question)):
            return [lost]
        first, last = _range(rows.of(Query, question), self.widen_days)
        days = _days(rows)
        best = [page for page in rankings[0] if page.score is not None]
        is_within = {page: _is_within(days[page.page_index], first, last) for page in best}
        if self.out_of_range == "drop":
            best = [page for page in best if is_within[page]]
        kept = sorted(best, key=lambda page: not is_within[page])
        return [ranked_turn(question, kept, self.top_k)]


class SearchKeysByBM25(SearchKeys, ByBM25):
    """By BM25 over all keys of the document."""

    kind = "bm25"
    version = 1
    reads = (Key, Expansion, Query)


class SearchKeysByVectors(SearchKeys, ByVectors):
    """By the embeddings of the keys."""

    kind = "dense"
    version = 1
    reads = (Key, Expansion, Embedding, Query)


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
