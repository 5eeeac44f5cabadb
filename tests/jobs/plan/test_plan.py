"""A plan holds: what a run makes is near what was expected, and no reply is over its budget."""

import json
from pathlib import Path

import pytest

from tests.support.command import DATA, QMSUM, sql, succeed
from tests.support.runs.plans import (
    made,
    off,
    over_budget,
    planned,
    since,
    six_documents,
    stages,
)

MEETINGS = ("corpus=qmsum", f"corpus.path={QMSUM}", "run=r", "limit=2")
CORPORA = {
    "meetings": (*MEETINGS, "methods=gist_only,readagent_p(max_pages=3),readagent_s(max_pages=3),"
                 "bm25(top_k=2),oracle_pages(top_k=1),closed_book,constant"),
    "trees": (*MEETINGS, "methods=memwalker(segment_tokens=1000,max_children=8)"),
    "clues": (*MEETINGS, "memory=uniform", "methods=memorag(memory=full|gists|gist_memory,"
              "retriever=bm25,draft=true),hyde(retriever=bm25),rq_rag(retriever=bm25)"),
    "books": ("corpus=narrativeqa", f"corpus.path={DATA / 'narrativeqa'}", "run=r", "limit=1",
              "corpus.split=test", "methods=gist_only,readagent_p(max_pages=2)"),
    "histories": ("corpus=longmemeval", "run=r", "methods=gist_only", "limit=6",
                  f"corpus.path={DATA / 'longmemeval' / 'longmemeval_oracle_16.json'}"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("name", CORPORA)
def test_a_run_makes_what_was_planned(tmp_path: Path, name: str) -> None:
    """The extractive engine breaks, shortens and looks up much as is expected."""
    words = (*CORPORA[name], f"warehouse={tmp_path}")
    plan = planned(*words)
    assert "nothing is scaled" in plan["assumptions"][0]
    succeed("run", *words)
    was = made(tmp_path)
    assert over_budget(plan, was) == []
    # The book has seven windows if each ends in its middle, of which the engine needs five; and of
    # pages so long it says less than is expected of a model, as it does of segments.
    measures = ("calls",) if name == "books" else ("calls", "prompt_tokens")
    assert off(plan, was, 0.5 if name in ("books", "trees") else 0.35, measures) == []
    there = sum(file.stat().st_size for file in (tmp_path / "tables").rglob("*.parquet"))
    if name != "books":  # before the book come documents without a story, which are not counted
        assert sum(plan["disk"].values()) == pytest.approx(there, rel=0.33)


@pytest.mark.slow
def test_where_pages_and_gists_stand_calls_and_prompts_are_exact(tmp_path: Path) -> None:
    """Then only replies and what a model looks up are not determined."""
    words = (*MEETINGS, f"warehouse={tmp_path}")
    succeed("run", *words, "methods=gist_only")
    assert "nothing is left" in succeed("plan", *words, "methods=gist_only")
    before = made(tmp_path)
    more = "methods=full_text,bm25(top_k=2),oracle_pages(top_k=1),readagent_p(max_pages=3)"
    plan = planned(*words, more)
    succeed("run", *words, more)
    was = since(made(tmp_path), before)
    assert over_budget(plan, was) == []
    assert stages(plan).keys() == {"look_up", "answer", "rate"}
    rows = sql(
        tmp_path,
        "select step_id, count(*) as calls, sum(prompt_tokens)::bigint as prompt_tokens "
        "from calls where stage in ('look_up', 'answer') group by step_id",
    )
    found = {row["step_id"]: row for row in rows}
    for step in plan["steps"]:
        if step["stage"] == "rate":  # shows the answer, so that its prompt is not known
            continue
        assert step["expected"]["calls"] == found[step["step_id"]]["calls"]
        if step["stage"] == "look_up" or "readagent" not in step["method"]:
            assert step["expected"]["prompt_tokens"] == found[step["step_id"]]["prompt_tokens"]
    # A document more: the others are done.
    plan = planned(*words, more, "limit=3")
    assert plan["corpus"] == {**plan["corpus"], "documents": 3, "documents_to_do": 1}


@pytest.fixture(scope="module")
def six(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    return six_documents(tmp_path_factory.mktemp("corpus"))


@pytest.mark.slow
def test_a_killed_runs_plan_is_of_the_rest(tmp_path: Path, six: tuple[str, ...]) -> None:
    """As if killed between the calls of a unit and its rows, and before any of another's."""
    words = (*six, "limit=3", f"warehouse={tmp_path}", "run=r")
    succeed("run", *words)
    answers = sorted((tmp_path / "tables" / "answers").glob("*/*.parquet"))
    for file in answers[:2]:
        file.unlink()
    (lost,) = (tmp_path / "tables" / "calls").glob(f"*/{answers[0].name}")
    lost.unlink()
    plan = planned(*words)
    assert plan["corpus"]["documents_to_do"] == 2
    assert {s: r["expected"]["calls"] for s, r in stages(plan).items()} == {"answer": 1}
    assert json.loads(succeed("run", *words, "--json"))["calls"] == {
        plan["steps"][0]["step_id"]: 1}  # fmt: skip


def test_a_plan_writes_nothing(tmp_path: Path, six: tuple[str, ...]) -> None:
    planned(*six, f"warehouse={tmp_path}")
    assert [*tmp_path.iterdir()] == []
