"""The tables between a question and its answer: queries, look-ups (lookups.sql makes and measures
their rankings), visits to the nodes of a tree, notes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import shorten
from typing import Any

from pipeline.core.rows import Line, QuestionRow

# The measures in lookups.sql that LongMemEval's tables have: every report computes them.
_RANKED = {
    "recall_any": "whether a session with evidence is among the {k} best (LongMemEval)",
    "recall_all": "whether all sessions with evidence are among the {k} best (LongMemEval)",
    "ndcg": "NDCG of the {k} best sessions, with the discount log2(rank + 1)",
    "ndcg_published": "the same with LongMemEval's discount: log2(rank), and 1 at rank 1",
}
RANKING_MEASURES = {  # and what a paper states of them
    f"session_{metric}@{k}": about.format(k=k) for metric, about in _RANKED.items() for k in (5, 10)
}

_TRACED = 160  # characters of a turn's page indexes in a trace


@dataclass(frozen=True, slots=True)
class Dropped:
    """A page that was requested but not read, and why."""

    page_index: int
    reason: str  # duplicate, out_of_range, over_maximum, no_room, rejected


@dataclass(frozen=True, slots=True)
class RankedPage:
    """A page in a ranking. `score`: the number that it was ranked by, in the ranking's own unit;
    null if there is none (pages drawn at random, a page without an embedding)."""

    page_index: int
    score: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup(QuestionRow):
    """One look-up turn of one question. A method without look-ups writes an empty turn 0."""

    table = "lookups"
    key = ("question_id", "turn")
    drawn = True
    turn: int  # of the question's look-ups, from 0
    query_index: int | None = None  # of the query that was searched for
    requested: tuple[int, ...] = ()  # page indexes in the order of the reply, legal or not
    used: tuple[int, ...] | None = ()  # page indexes in order of importance; null: no reply
    # requested and not read: duplicate, out_of_range, over_maximum, no_room or rejected.
    dropped: tuple[Dropped, ...] = ()
    # best first, to the 50th, by the keys of a chat to its 50th session; empty where a model chose.
    ranked: tuple[RankedPage, ...] = ()
    skipped: bool = False  # the method does not apply (oracle_pages without gold evidence)

    def why_unusable(self) -> str | None:
        """Only without a reply: after an unreadable one the gists remain."""
        return f"look_up: {self.problem}" if self.used is None else None

    @classmethod
    def trace(cls, row: Mapping[str, Any]) -> Sequence[Line]:
        dropped = ", ".join(f"{drop['page_index']} ({drop['reason']})" for drop in row["dropped"])
        parts = (
            f"asked for {shorten(str(row['requested']), _TRACED)}",
            f"read {shorten(str(row['used']), _TRACED)}",
            dropped and f"dropped {dropped}",
            row["problem"] and f"problem {row['problem']}",
        )
        of = "" if row["query_index"] is None else f" by query {row['query_index']}"
        return [f"look-up {row['turn']}{of}: {', '.join(filter(None, parts))}"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Query(QuestionRow):
    """A text that is searched for on behalf of a question."""

    table = "queries"
    key = ("question_id", "query_index")
    drawn = True
    has_pages = False
    query_index: int  # of the question's queries, from 0
    # question, span, surrogate, draft, point, hypothetical, sub_question or time_range.
    kind: str
    text: str | None  # null: no reply, or none that can be read
    # why it is not searched for: short (fewer words than the setting), duplicate, over_maximum.
    dropped: str | None = None
    part_index: int | None = None  # the part of the memory that it comes from
    start_date: str | None = None  # YYYY/MM/DD; of a time range
    end_date: str | None = None  # YYYY/MM/DD; of a time range

    def why_unusable(self) -> str | None:
        is_reply = self.problem in (None, "truncated", "unparseable")
        return None if is_reply else f"queries: {self.problem}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit(QuestionRow):
    """A visit to a node, and the action taken there. The last one has no `to_node` unless the
    navigation was stopped at its maximum of steps.

    The measures of a question's visits, its columns in the report, are null if the model never
    replied.
    """

    table = "visits"
    key = ("question_id", "turn")
    drawn = True
    turn: int  # of the question's visits, from 0
    node_index: int | None = None  # null: the navigation could not begin
    depth: int = 0  # levels below the root
    page_index: int | None = None  # of a leaf
    action: str | None = None  # enter, revert, answer; null: no reply with a legal one
    to_node: int | None = None  # the node that is visited next
    chosen_by: str | None = None  # model; rule: the only legal action, without a call
    reason: str | None = None  # what the reply says before its action
    num_replies: int = 0  # of the model, at this visit
    num_invalid: int = 0  # replies without a legal action
    rejected: tuple[int, ...] = ()  # children that could not be chosen again, by node index
    num_memory_words: int = 0  # of the working memory shown
    is_memory_cut: bool = False  # whether all of it did not fit the context or the budget
    num_context_tokens: int | None = None  # of the segment and working memory; null: at no leaf
    num_new_words: int = 0  # shown here for the first time, without working memory
    answer: str | None = None  # as the model gave it; null: none
    answer_index: int | None = None  # the option chosen
    reader: str = ""  # the engine that replied

    def why_unusable(self) -> str | None:
        is_reply = self.problem in (None, "truncated", "unparseable", "out_of_range")
        why = self.detail if self.problem == "context_overflow" else None  # a budget's
        return None if is_reply else f"navigate: {why or self.problem}"

    @classmethod
    def trace(cls, row: Mapping[str, Any]) -> Sequence[Line]:
        """Indented by depth."""
        to = f"to node {row['to_node']}" if row["action"] == "enter" else row["action"]
        why = row["problem"] or row["reason"] or f"chosen by {row['chosen_by']}"
        lead = f"{'  ' * row['depth']}step {row['turn']}: node {row['node_index']}"
        return [f"{lead}: {to or 'no action'}; {' '.join(why.split())}"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Note(QuestionRow):
    """A note: what one page says about a question; a question for which no page was read has one
    row without a page."""

    table = "notes"
    key = ("question_id", "page_index")
    page_index: int | None  # of the page that was read; null: none was
    note: str | None  # "": nothing; null: no reply, or no page

    def why_unusable(self) -> str | None:
        is_reply = self.problem in (None, "truncated", "unparseable")
        return None if is_reply else f"notes: {self.problem}"
