"""The table `lookups`, with the rankings that lookups.sql makes of it and measures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pipeline.core.rows import QuestionRow
from pipeline.core.trace_lines import Line

# The measures in lookups.sql, those of LongMemEval's tables: every report computes them.
RANKING_MEASURES = tuple(
    f"session_{metric}@{k}"
    for metric in ("recall_any", "recall_all", "ndcg", "ndcg_published")
    for k in (5, 10)
)
_TRACED = 30  # page indexes of a turn that a trace lists


@dataclass(frozen=True, slots=True)
class Dropped:
    """A page that was requested but not read, and why."""

    page_index: int
    reason: str  # duplicate, out_of_range, over_maximum, no_room, rejected


@dataclass(frozen=True, slots=True)
class RankedPage:
    """A page in a ranking. `score`: what it was ranked by, in the ranking's own unit; null where
    that is nothing (pages drawn at random, a page without an embedding)."""

    page_index: int
    score: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup(QuestionRow):
    """One look-up turn of one question. A method without look-ups writes an empty turn 0."""

    table: ClassVar[str] = "lookups"
    key: ClassVar[tuple[str, ...]] = ("question_id", "turn")
    drawn: ClassVar[bool] = True
    turn: int  # of the question's look-ups, from 0
    query_index: int | None = None  # of the query that was searched for
    requested: tuple[int, ...] = ()  # page indexes in the order of the reply, legal or not
    used: tuple[int, ...] | None = ()  # page indexes in order of importance; null: no reply
    # requested and not read: duplicate, out_of_range, over_maximum, no_room or rejected.
    dropped: tuple[Dropped, ...] = ()
    ranked: tuple[RankedPage, ...] = ()  # best first, to the 50th; empty where a model chose
    skipped: bool = False  # the method does not apply (oracle_pages without gold evidence)

    def why_unusable(self) -> str | None:
        """Only a turn without a reply: after one that cannot be parsed the gists remain."""
        return f"look_up: {self.problem}" if self.used is None else None

    @classmethod
    def trace(cls, row: Mapping[str, Any]) -> Sequence[Line]:
        dropped = [f"{drop['page_index']} ({drop['reason']})" for drop in row["dropped"]]
        parts = [f"asked for {_listed(row['requested'])}", f"read {_listed(row['used'])}"]
        parts += [f"dropped {', '.join(dropped)}"] if dropped else []
        parts += [f"problem {row['problem']}"] if row["problem"] else []
        of = "" if row["query_index"] is None else f" by query {row['query_index']}"
        return [f"look-up {row['turn']}{of}: {', '.join(parts)}"]


def _listed(indexes: Sequence[int] | None) -> str:
    """The page indexes, of very many the first ones."""
    if indexes is None or len(indexes) <= _TRACED:
        return str(indexes)
    first = ", ".join(map(str, indexes[:_TRACED]))
    return f"[{first} and {len(indexes) - _TRACED} more]"
