"""Which call waits for which, on calls made by hand, and the longest chain of them."""

from dataclasses import replace
from typing import Any

from jobs.bench.chains import Made, longest_chain, waits
from jobs.bench.limit import middle
from pipeline.rows import Call
from pipeline.steps import Step


def step(name: str, table: str, *upstream: Step, method: str | None = None) -> Step:
    return Step(
        corpus="c",
        name=name,
        version=1,
        table=table,
        settings={},
        method=method,
        upstream=upstream,
    )


DOCUMENTS = step("documents", "documents")
PAGES = step("paginate", "pages", DOCUMENTS)
GISTS = step("gist", "gists", DOCUMENTS, PAGES)
LOOK_P = step("look_up", "lookups", DOCUMENTS, PAGES, GISTS, method="p")
ANSWER_P = step("answer", "answers", DOCUMENTS, PAGES, GISTS, LOOK_P, method="p")
LOOK_BM25 = step("look_up", "lookups", DOCUMENTS, PAGES, method="bm25")
ANSWER_BM25 = step("answer", "answers", DOCUMENTS, PAGES, LOOK_BM25, method="bm25")
LOOK_NONE = step("look_up", "lookups", DOCUMENTS, method="closed_book")
ANSWER_NONE = step("answer", "answers", DOCUMENTS, LOOK_NONE, method="closed_book")


def made(of: Step, document_id: str = "d1", **place: Any) -> Made:
    call = Call(
        document_id=document_id, call_index=0, stage=of.name, question_id=None, page_index=None,
        turn=None, reference_index=None, prompt="", request_sha="", engine="", attempt=1,
        prompt_tokens=0, cached_tokens=0, reply_tokens=0, finish_reason="stop", seconds=0.0,
        reply="",
    )  # fmt: skip
    return Made(of, replace(call, **place))


MEMORY = (
    made(PAGES, page_index=0),
    made(PAGES, page_index=1),
    made(PAGES, page_index=3),  # page 2 had one legal end, and 4 was the tail: no calls
    *(made(GISTS, page_index=page) for page in range(5)),
)


def test_break_points_are_a_chain_and_a_gist_waits_for_its_page() -> None:
    assert waits(MEMORY) == [(), (0,), (1,), (0,), (1,), (1,), (2,), (2,)]


def test_a_look_up_waits_for_all_gists_and_an_answer_for_its_look_up() -> None:
    calls = (
        *MEMORY,
        made(LOOK_P, question_id="q1", turn=0),
        made(LOOK_P, question_id="q2", turn=0),
        made(ANSWER_P, question_id="q1"),
    )
    memory = (2, 3, 4, 5, 6, 7)  # the last break point and all gists
    assert waits(calls)[8:] == [memory, memory, (*memory, 8)]


def test_turns_of_a_look_up_are_a_chain_of_their_question() -> None:
    turns = [(0, "q1"), (1, "q1"), (0, "q2"), (2, "q1")]
    calls = [made(LOOK_P, question_id=question, turn=turn) for turn, question in turns]
    assert waits(calls) == [(), (0,), (), (1,)]
    answered = [*calls, made(ANSWER_P, question_id="q1")]
    assert waits(answered)[-1] == (3,)


def test_what_a_step_without_calls_reads_is_waited_for() -> None:
    calls = (*MEMORY, made(ANSWER_BM25, question_id="q1"), made(ANSWER_NONE, question_id="q1"))
    assert waits(calls)[8:] == [(2,), ()]


def test_documents_do_not_wait_for_each_other_and_order_does_not_matter() -> None:
    calls = [
        made(GISTS, page_index=0),
        made(PAGES, "d2", page_index=0),
        made(PAGES, page_index=0),
        made(GISTS, "d2", page_index=0),
    ]
    assert waits(calls) == [(2,), (), (), (1,)]


def test_the_longest_chain_adds_up_what_waits_for_each_other() -> None:
    # Break points 1 + 2 + 4 seconds one after the other, then the gists of pages 3 and 4.
    seconds = {("paginate", 0): 1.0, ("paginate", 1): 2.0, ("paginate", 3): 4.0,
               ("gist", 0): 9.5, ("gist", 4): 3.0}  # fmt: skip

    def of(call: Call) -> float:
        return seconds.get((call.stage, call.page_index or 0), 0.0)

    assert longest_chain(MEMORY, of) == 1.0 + 9.5
    assert longest_chain(MEMORY, lambda call: min(of(call), 4.0)) == 1.0 + 2.0 + 4.0 + 3.0
    assert longest_chain((), of) == 0.0


def test_the_middle_document_is_by_number_of_calls() -> None:
    calls = [made(GISTS, name) for name in ("a", "b", "b", "c", "c", "c")]
    assert [one.call.document_id for one in middle(calls)] == ["b", "b"]
