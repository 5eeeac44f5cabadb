"""RQ-RAG's loop: trajectories of queries, the pages they find, and the answer they agree on."""

from pathlib import Path
from typing import Any

import pytest

from pipeline.core.rows import UnitRows
from stages.index.context import raw_pages
from stages.prompts.memorag import ACTIONS, RefineQuery
from stages.read.answer_kinds import AnswerFromTrajectories
from stages.retrieve.search import RefineByBM25, RefineByVectors, RefinedLookUp
from stages.tables.lookups import Dropped, Lookup, Refinement
from tests.stages.retrieve.test_search import Axes, pages_on_axes
from tests.support.reading import (
    Listener,
    adding,
    always,
    book,
    deadline,
    never,
    num_tokens,
    question,
    run,
    scripted,
)

PAGES = ("bell bell. ", "rope rope. ", "tower tower. ", "stair stair. ")
STAGE = RefineByBM25(top_k=1, steps=3, bm25="plus_on_stems")
ANSWER = AnswerFromTrajectories(first_page=0, answer_words=9, answer_page_tags=False)


def rows(*tables: Any, **more: Any) -> UnitRows:
    unit = book(PAGES, questions=[question(text="Who rang?", **more)])
    return adding(unit, {type(own[0]): own for own in tables})


def by_action(**queries: list[str]) -> Listener:
    """The replies of each trajectory in its steps, told apart by the first query."""
    firsts = {own[0]: own for own in queries.values()}

    def reply(request: Any) -> str:
        fields = request.fields
        assert isinstance(fields, RefineQuery)
        if fields.action is not None:
            return queries[fields.action][0]
        return firsts[fields.queries[0]][len(fields.queries)]

    return Listener(reply)


def test_each_action_on_the_question_begins_a_trajectory() -> None:
    engine = by_action(
        rewrite=["bell", "rope", "ENOUGH"], decompose=["tower", "ENOUGH"],
        disambiguate=["stair", "stair", "bell"],
    )  # fmt: skip
    made, calls = run(STAGE, rows(), engine)
    assert [(row.turn, row.trajectory, row.action, row.text, row.used) for row in made] == [
        (0, 0, "rewrite", "bell", (0,)), (1, 0, None, "rope", (1,)), (2, 0, None, "", ()),
        (3, 1, "decompose", "tower", (2,)), (4, 1, None, "", ()),
        (5, 2, "disambiguate", "stair", (3,)), (6, 2, None, "stair", ()),
        (7, 2, None, "bell", (0,)),
    ]  # fmt: skip
    assert len(calls) == 8
    fields = [r.fields for r in engine.requests if isinstance(r.fields, RefineQuery)]
    third = next(prompt for prompt in fields if prompt.queries == ("bell", "rope"))
    assert [passage.text for passage in third.passages] == ["bell bell.", "rope rope."]
    (turn, *others), _ = run(RefinedLookUp(), rows(made), never())
    used = [one.used for one in (turn, *others)]
    assert used == [(0,), (1,), (2,), (3,), (), ()], "a page that was found is used once"
    dropped = [one.dropped for one in (turn, *others)]
    assert dropped == [(), (), (), (), (), (Dropped(0, "duplicate"),)]


def test_by_vectors_and_at_most_so_many_steps() -> None:
    axes = Axes(model=None, chunk_words=None, device="cpu", batch_size=1)
    stage = RefineByVectors(top_k=2, steps=1, embedder=axes)
    made, _ = run(stage, rows(pages_on_axes(4)), always("tower rope tower"))
    assert [(row.trajectory, row.used) for row in made] == [(0, (2, 1)), (1, (2, 1)), (2, (2, 1))]


@pytest.mark.parametrize(
    ("rule", "problem", "lack"),
    [({"reply": "..."}, "unparseable", None), ({"hang": True}, "timeout", "refine: timeout")],
)
def test_a_step_without_a_query_ends_its_trajectory(
    tmp_path: Path, rule: dict[str, Any], problem: str, lack: str | None
) -> None:
    rules = ({"match": "decompose", **rule}, {"reply": "bell"})
    engine = scripted(tmp_path, *rules)
    made, _ = run(STAGE, rows(), engine, deadline_seconds=deadline(*rules))
    own = [row for row in made if row.trajectory == 1]
    assert [(row.text, row.problem, row.why_unusable()) for row in own] == [(None, problem, lack)]
    assert len([row for row in made if row.trajectory == 0]) == 3
    (turn, *_), _ = run(RefinedLookUp(), rows(made), never())
    assert (turn.problem, turn.detail) == (("upstream", lack) if lack else (None, None))


def test_a_step_that_outgrows_the_context_ends_its_trajectory() -> None:
    """What the steps before it found is answered from; a question without room is not."""
    first = max(num_tokens(RefineQuery((), "Who rang?", (), (), action)) for action in ACTIONS)
    engine = Listener(lambda request: "bell", first + 50)
    made, _ = run(STAGE, rows(), engine, reply_tokens={"refine_query": 50})
    steps = [("bell", None), (None, "context_overflow")]
    assert [(row.text, row.problem) for row in made] == steps * 3
    (turn, *_), _ = run(RefinedLookUp(), rows(made), never())
    assert (turn.used, turn.problem) == ((0,), None)
    (answer,), _ = run(ANSWER, rows(made, [turn]), always("Nobody."))
    assert (answer.answer, answer.page_indexes, answer.problem) == ("Nobody.", (0,), None)
    engine = Listener(lambda request: "bell", 60)
    made, _ = run(STAGE, rows(), engine, reply_tokens={"refine_query": 50})
    (turn,), _ = run(RefinedLookUp(), rows(made), never())
    assert (turn.used, turn.problem) == (None, "upstream")


def found(*used: tuple[int, ...]) -> list[Refinement]:
    return [
        Refinement(document_id="d", question_id="q", turn=n, trajectory=n, text="x", used=pages)
        for n, pages in enumerate(used)
    ]


def answered(engine: Any, reply_tokens: Any = None, **more: Any) -> Any:
    refined = found((0,), (1, 2), (3,))
    looked_up = [Lookup(document_id="d", question_id="q", turn=0, used=(0, 1, 2, 3))]
    unit = rows(refined, looked_up, **more)
    (answer,), calls = run(ANSWER, unit, engine, reply_tokens=reply_tokens)
    assert {call.turn for call in calls} == {0, 1, 2}
    return answer


def by_page(bell: str, rope: str, stair: str) -> Listener:
    def reply(request: Any) -> str:
        text = request.messages[0]["content"]
        return bell if "bell" in text else rope if "rope" in text else stair

    return Listener(reply)


def test_the_answer_is_the_one_that_the_others_share_most_with() -> None:
    """By hand: F1 of "a b" and "a b c" is 4/5, of "a b" and "z" 0, of "a b c" and "z" 0."""
    answer = answered(by_page("z", "a b", "a b c"))
    assert (answer.answer, answer.page_indexes, answer.detail) == (
        "a b",
        (1, 2),
        "trajectory 1 of 3",
    )
    assert answered(by_page("z", "y", "x")).detail == "trajectory 0 of 3"
    options = {"options": ("one", "two", "three")}
    letters = answered(by_page("Answer: (A)", "Answer: (C)", "Answer: (C)"), **options)
    assert (letters.answer_index, letters.detail) == (2, "trajectory 1 of 3")


def test_a_trajectory_without_an_answer_does_not_count() -> None:
    options = {"options": ("one", "two")}
    answer = answered(by_page("???", "Answer: (B)", "???"), **options)
    assert (answer.answer_index, answer.problem) == (1, None)
    lost = answered(by_page("???", "???", "???"), **options)
    assert lost.problem == "unparseable"


def test_pages_without_room_are_left_out_of_a_trajectory() -> None:
    """Two pages are one too many."""
    asked = [ANSWER.prompt(question(text="Who rang?"), raw_pages(rows(), used, 0))
             for used in ((2,), (1, 2))]  # fmt: skip
    one, two = (num_tokens(prompt) for prompt in asked)
    assert one < two
    engine = by_page("z", "a b", "a b c")
    engine.context_tokens = two - 1 + 50
    answer = answered(engine, {"answer": 50})
    assert (answer.answer, answer.page_indexes, answer.problem) == ("a b", (1,), None)
    assert answer.detail == "trajectory 1 of 3, no room for 1 of 2 pages"
