"""Which call waits for which, on calls of stages made by hand, and the longest chain of them."""

from abc import ABC
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from benchmarks.dependencies import Made, dependencies, longest_chain
from pipeline.core.calls import Call
from pipeline.core.errors import Problem
from pipeline.core.rows import Document, IndexRow, QuestionRow, Record, UnitRows
from pipeline.work.stage import Stage
from pipeline.work.units import Step


class _Cut(IndexRow):
    """A row of the document's memory."""


class _Reply(QuestionRow):
    """A row of a question."""


class _AtOnce(Stage, ABC):
    """A stage; it is never run here."""

    async def run(self, rows: UnitRows, ask: Any) -> Sequence[Record]:
        return ()

    def failed(self, rows: UnitRows, problem: Problem, detail: str | None) -> Sequence[Record]:
        return ()


class _InTurn(_AtOnce, ABC):
    """Each call waits for the last."""

    asks_in_turn: ClassVar[bool] = True


def step(name: str, stage: Stage | None, writes: type[Record], *upstream: Step) -> Step:
    return Step(
        corpus="c",
        name=name,
        version=1,
        writes=writes,
        settings={},
        upstream=upstream,
        stage=stage,
    )


DOCUMENTS = step("documents", None, Document)
CUTS = step("cut", _InTurn(), _Cut, DOCUMENTS)
NOTES = step("note", _AtOnce(), _Cut, DOCUMENTS, CUTS)
SEARCH = step("search", _AtOnce(), _Reply, DOCUMENTS, CUTS, NOTES)
TURNS = step("turns", _InTurn(), _Reply, DOCUMENTS, CUTS, NOTES)
REPLY = step("reply", _AtOnce(), _Reply, DOCUMENTS, CUTS, NOTES, SEARCH)
AFTER_TURNS = step("reply after turns", _AtOnce(), _Reply, DOCUMENTS, CUTS, NOTES, TURNS)
RANKED = step("ranked", _AtOnce(), _Reply, DOCUMENTS, CUTS)  # asks nothing
AFTER_RANKED = step("reply after ranked", _AtOnce(), _Reply, DOCUMENTS, CUTS, RANKED)
NOTHING = step("nothing", _AtOnce(), _Reply, DOCUMENTS)
AFTER_NOTHING = step("reply after nothing", _AtOnce(), _Reply, DOCUMENTS, NOTHING)


def made(of: Step, document_id: str = "d1", **place: Any) -> Made:
    call = Call(
        document_id=document_id, call_index=0, stage=of.name, question_id=None, page_index=None,
        turn=None, reference_index=None, prompt="", request_sha="", engine="", attempt=1,
        prompt_tokens=0, cached_tokens=0, reply_tokens=0, finish_reason="stop", seconds=0.0,
        reply="",
    )  # fmt: skip
    return Made(of, replace(call, **place))


MEMORY = (
    made(CUTS, page_index=0),
    made(CUTS, page_index=1),
    made(CUTS, page_index=3),  # page 2 had one legal end, and 4 was the tail: no calls
    *(made(NOTES, page_index=page) for page in range(5)),
)


ALL_MEMORY = (2, 3, 4, 5, 6, 7)  # the last of the chain and all notes
TURN: dict[str, Any] = {"question_id": "q1", "turn": 0}
AGAIN: dict[str, Any] = {**TURN, "attempt": 2}


@pytest.mark.parametrize(
    ("calls", "waits"),
    [
        # Asked in turn: a chain; what is of a page waits for that page.
        (MEMORY, [(), (0,), (1,), (0,), (1,), (1,), (2,), (2,)]),
        # Else a call waits for all that its step reads.
        ([*MEMORY, made(SEARCH, **TURN), made(SEARCH, question_id="q2", turn=0)],
         [ALL_MEMORY, ALL_MEMORY]),
        ([*MEMORY, made(SEARCH, **TURN), made(REPLY, question_id="q1")],
         [ALL_MEMORY, (*ALL_MEMORY, 8)]),
        # Also through a step without calls.
        ([*MEMORY, made(AFTER_RANKED, question_id="q1"), made(AFTER_NOTHING, question_id="q1")],
         [(2,), ()]),
        # Turns are a chain of their question.
        ([made(TURNS, question_id=q, turn=turn) for turn, q in
          ((0, "q1"), (1, "q1"), (0, "q2"), (2, "q1"))] + [made(AFTER_TURNS, question_id="q1")],
         [(), (0,), (), (1,), (3,)]),
        # What is asked again waits for the first reply, and for nobody else's.
        ([made(SEARCH, **AGAIN), made(SEARCH, **TURN), made(SEARCH, question_id="q2", turn=0)],
         [(1,), (), ()]),
        # Documents do not wait for each other, and order does not matter.
        ([made(NOTES, page_index=0), made(CUTS, "d2", page_index=0), made(CUTS, page_index=0),
          made(NOTES, "d2", page_index=0)], [(2,), (), (), (1,)]),
    ],
)  # fmt: skip
def test_a_call_waits_for_what_it_follows_from(
    calls: Sequence[Made], waits: list[tuple[int, ...]]
) -> None:
    assert dependencies(calls)[-len(waits) :] == waits


def test_the_longest_chain_adds_up_what_waits_for_each_other() -> None:
    # A chain of 1 + 2 + 4 seconds; notes of pages 0 and 4 hang on its first and last call.
    seconds = {("cut", 0): 1.0, ("cut", 1): 2.0, ("cut", 3): 4.0,
               ("note", 0): 9.5, ("note", 4): 3.0}  # fmt: skip

    def of(call: Call) -> float:
        return seconds.get((call.stage, call.page_index or 0), 0.0)

    assert longest_chain(MEMORY, of) == 1.0 + 9.5
    assert longest_chain(MEMORY, lambda call: min(of(call), 4.0)) == 1.0 + 2.0 + 4.0 + 3.0
    assert longest_chain((), of) == 0.0
