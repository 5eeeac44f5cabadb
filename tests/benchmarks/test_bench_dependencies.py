"""Which call waits for which, on calls made by hand, and the longest chain of them.

The stages are none of ours: what waits for what follows from what they say of themselves.
"""

from abc import ABC
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from benchmarks.dependencies import Made, dependencies, longest_chain
from pipeline.core.calls import Call
from pipeline.core.errors import Problem
from pipeline.core.rows import Document, IndexRow, QuestionRow, Record, UnitRows
from pipeline.work.stage import Stage
from pipeline.work.steps import Step


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


def test_calls_asked_in_turn_are_a_chain_and_what_is_of_a_page_waits_for_that_page() -> None:
    assert dependencies(MEMORY) == [(), (0,), (1,), (0,), (1,), (1,), (2,), (2,)]


def test_a_call_waits_for_all_that_its_step_reads() -> None:
    calls = (
        *MEMORY,
        made(SEARCH, question_id="q1", turn=0),
        made(SEARCH, question_id="q2", turn=0),
        made(REPLY, question_id="q1"),
    )
    memory = (2, 3, 4, 5, 6, 7)  # the last of the chain and all notes
    assert dependencies(calls)[8:] == [memory, memory, (*memory, 8)]


def test_turns_are_a_chain_of_their_question() -> None:
    turns = [(0, "q1"), (1, "q1"), (0, "q2"), (2, "q1")]
    calls = [made(TURNS, question_id=question, turn=turn) for turn, question in turns]
    assert dependencies(calls) == [(), (0,), (), (1,)]
    answered = [*calls, made(AFTER_TURNS, question_id="q1")]
    assert dependencies(answered)[-1] == (3,)


def test_what_is_asked_again_waits_for_the_first_reply_and_for_nobody_elses() -> None:
    calls = [
        made(SEARCH, question_id="q1", turn=0, attempt=2),
        made(SEARCH, question_id="q1", turn=0),
        made(SEARCH, question_id="q2", turn=0),
    ]
    assert dependencies(calls) == [(1,), (), ()]


def test_what_a_step_without_calls_reads_is_waited_for() -> None:
    calls = (*MEMORY, made(AFTER_RANKED, question_id="q1"), made(AFTER_NOTHING, question_id="q1"))
    assert dependencies(calls)[8:] == [(2,), ()]


def test_documents_do_not_wait_for_each_other_and_order_does_not_matter() -> None:
    calls = [
        made(NOTES, page_index=0),
        made(CUTS, "d2", page_index=0),
        made(CUTS, page_index=0),
        made(NOTES, "d2", page_index=0),
    ]
    assert dependencies(calls) == [(2,), (), (), (1,)]


def test_the_longest_chain_adds_up_what_waits_for_each_other() -> None:
    # A chain of 1 + 2 + 4 seconds; notes of pages 0 and 4 hang on its first and last call.
    seconds = {("cut", 0): 1.0, ("cut", 1): 2.0, ("cut", 3): 4.0,
               ("note", 0): 9.5, ("note", 4): 3.0}  # fmt: skip

    def of(call: Call) -> float:
        return seconds.get((call.stage, call.page_index or 0), 0.0)

    assert longest_chain(MEMORY, of) == 1.0 + 9.5
    assert longest_chain(MEMORY, lambda call: min(of(call), 4.0)) == 1.0 + 2.0 + 4.0 + 3.0
    assert longest_chain((), of) == 0.0
