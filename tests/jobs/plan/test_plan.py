"""A plan holds: what a run makes is near what was expected, and no reply is over its budget."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pipeline.files.checksums import without_checksum
from tests.pipeline.core.test_plugins import words as quotes
from tests.support.command import (
    DATA,
    NEEDS_WHOLE,
    QMSUM,
    ROOT,
    WHOLE,
    own_process,
    sql,
    succeed,
    succeeded,
)
from tests.support.runs.plans import files, made, off, over_budget, planned, since, stages
from tests.support.texts.small_corpus import UNIFORM, document, question, write

METHODS = (
    "methods=gist_only,readagent_p(max_pages=3),readagent_s(max_pages=3),bm25(top_k=2),"
    "oracle_pages(top_k=1),closed_book,constant"
)
MEETINGS = ("corpus=qmsum", f"corpus.path={QMSUM}", "run=r", "limit=2")
SIMULATED = (
    "engine=simulated", "engine.decode_tokens_per_second=100000", "engine.max_workers=1",
    "max_fallback_rate=1", "engine.prefill_tokens_per_second=10000000",
    "engine.kv_tokens=1000000", "reply_format=constrained",
)  # fmt: skip
TREES = "methods=memwalker(segment_tokens=1000,max_children=8)"
CORPORA = {
    "meetings": (*MEETINGS, METHODS),
    "simulated": (*MEETINGS, METHODS, *SIMULATED),
    "baselines": (*MEETINGS, "methods=recurrence(segment_tokens=1500,summary_tokens=200),"
                  "truncated_to_context(keep=first|last),bm25_fill_context"),
    "trees": (*MEETINGS, TREES),
    "simulated trees": (*MEETINGS, TREES, *SIMULATED),
    "clues": (*MEETINGS, "memory=uniform", "methods=memorag(memory=full|gists|gist_memory,"
              "retriever=bm25,draft=true),hyde(retriever=bm25),rq_rag(retriever=bm25)"),
    "simulated clues": (*MEETINGS, "memory=uniform", *SIMULATED,
                        "methods=memorag(memory=full,retriever=bm25),rag(retriever=bm25)"),
    "books": ("corpus=narrativeqa", f"corpus.path={DATA / 'narrativeqa'}", "run=r", "limit=1",
              "corpus.split=test", "methods=gist_only,readagent_p(max_pages=2)"),
    "choice": ("corpus=quality", f"corpus.path={WHOLE / 'quality' / 'QuALITY.one_record.jsonl'}",
               "methods=gist_only,readagent_p(max_pages=2),closed_book", "run=r"),
    "histories": ("corpus=longmemeval", "run=r", "methods=gist_only", "limit=6",
                  f"corpus.path={DATA / 'longmemeval' / 'longmemeval_oracle_16.json'}"),
    "keys": ("corpus=longmemeval", "run=r", "limit=4", "rater=none",
             f"corpus.path={DATA / 'longmemeval' / 'longmemeval_oracle_16.json'}",
             "methods=longmemeval(retriever=bm25,top_k=3,expansion=facts|events,"
             "time_aware=true|false),longmemeval_notes(retriever=bm25,top_k=2)"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=NEEDS_WHOLE if n == "choice" else ()) for n in CORPORA],
)
def test_a_run_makes_what_was_planned(tmp_path: Path, name: str) -> None:
    """The extractive engine breaks, shortens and looks up much as is expected; the simulated one
    always chooses the first of what is legal."""
    words = (*CORPORA[name], f"warehouse={tmp_path}")
    plan = planned(*words)
    assert "nothing is scaled" in plan["assumptions"][0]
    succeed("run", *words)
    was = made(tmp_path)
    assert over_budget(plan, was) == []
    if SIMULATED[0] not in words:
        # The book has seven windows if each ends in its middle, of which the engine needs five; and
        # of pages so long it says less than is expected of a model, as it does of segments.
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
    report = json.loads(succeed("report", f"warehouse={tmp_path}", "run=r", "--json"))
    told = {row["stage"]: row for row in report["planned"]}
    for stage, row in was.items():
        assert told[stage]["made"]["calls"] == row["calls"]
        assert told[stage]["made"]["prompt_tokens"] == row["prompt_tokens"]
    # A document more: the others are done.
    plan = planned(*words, more, "limit=3")
    assert plan["corpus"] == {**plan["corpus"], "documents": 3, "documents_to_do": 1}


@pytest.fixture(scope="module")
def six(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """Words of a corpus of six documents of three pages, a question each."""
    folder = tmp_path_factory.mktemp("corpus")
    numbers = range(1, 7)
    write(folder, [document(n) for n in numbers], [question(n, of=n) for n in numbers])
    return ("corpus=tables", f"corpus.path={folder}", *UNIFORM, "methods=gist_only")


@pytest.mark.slow
def test_a_pilot_is_run_and_scaled_and_nothing_of_it_is_asked_again(
    tmp_path: Path, six: tuple[str, ...]
) -> None:
    words = (*six, f"warehouse={tmp_path}", "run=r")
    plan = planned(*words, "pilot=2")
    assert plan["corpus"]["documents_to_do"] == 4
    # By hand: of the four that are left 12 pages, 4 answers, each of them rated twice.
    calls = {stage: row["expected"]["calls"] for stage, row in stages(plan).items()}
    assert calls == {"gist": 12, "answer": 4, "rate": 8}
    (phase,) = plan["phases"]
    assert phase["hours"]["expected"] > 0
    assert "by the clock of run r-pilot2" in phase["rates"]
    before = made(tmp_path, "r-pilot2")
    assert {stage: row["calls"] for stage, row in before.items()} == {
        "gist": 6, "answer": 2, "rate": 4}  # fmt: skip
    done = json.loads(succeed("run", *words, "--json"))
    assert sum(done["calls"].values()) == 24
    # All documents are alike in length, but not in how many signs their numbers have.
    assert off(plan, since(made(tmp_path), before), 0.02, ("calls", "prompt_tokens")) == []
    assert over_budget(plan, since(made(tmp_path), before)) == []


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


@pytest.mark.slow
def test_a_plugins_prompts_are_counted(tmp_path: Path) -> None:
    """In processes of their own: plugins are known to a whole process."""
    words = quotes(tmp_path)
    plan = json.loads(succeeded(own_process("plan", *words, "--json")))
    # By hand: four documents of three pages that only bm25's pages need no gists of; each question
    # has a page quoted, and two methods answer it and are rated by two prompts.
    calls = {stage: row["expected"]["calls"] for stage, row in stages(plan).items()}
    assert calls["quote"] == 4
    assert calls["answer"] == 8
    assert calls["rate"] == 16
    asked = stages(plan)["quote"]
    assert 0 < asked["expected"]["reply_tokens"] < asked["budgets"]["reply_tokens"]


def test_a_plan_leaves_itself_and_nothing_else(tmp_path: Path, six: tuple[str, ...]) -> None:
    warehouse = tmp_path / "warehouse"
    plan = planned(*six, f"warehouse={warehouse}")
    assert files(warehouse) == {f"runs/{plan['run']}/plan.json"}


@pytest.mark.slow
def test_a_plan_starts_no_ray(tmp_path: Path) -> None:
    """In a process of its own, as another test may have imported ray."""
    code = (
        "import sys; from jobs.cli import main\n"
        f"sys.argv = ['gistmill', 'plan', 'warehouse={tmp_path}', 'limit=1']\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code, end\n"
        "assert not {'ray', 'vllm', 'torch'} & set(sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    assert "paginate" in done.stdout


@pytest.mark.slow
def test_a_report_sets_the_plan_beside_what_happened(tmp_path: Path, six: tuple[str, ...]) -> None:
    words: tuple[Any, ...] = (*six, "limit=2", f"warehouse={tmp_path}", "run=r")
    succeed("plan", *words, "--rates", "1000,50")
    report = succeed("run", *words)
    (table,) = [part for part in report.split("\n\n") if "calls expected" in part]
    rows = {line.split("|")[1].strip(): line.split("|") for line in table.splitlines()}
    # By hand: 6 pages, 2 answers and each of them rated twice.
    for stage, calls in (("gist", "6"), ("answer", "2"), ("rate", "4")):
        assert [rows[stage][place].strip() for place in (2, 3)] == [calls] * 2
    (line,) = [part for part in report.split("\n\n") if part.startswith("Hours: ")]
    assert line.endswith("by the clock.")
    # As 0.2 wrote it.
    file = tmp_path / "runs" / "r" / "plan.json"
    own = without_checksum(file.read_bytes()).decode()
    file.write_text(own.replace('"budgets": {', '"at_most": {"calls": 9, '))
    assert table in succeed("report", f"warehouse={tmp_path}", "run=r")


@pytest.mark.slow
def test_a_plan_of_other_words_is_not_set_beside(tmp_path: Path, six: tuple[str, ...]) -> None:
    words = (*six, f"warehouse={tmp_path}", "run=r")
    succeed("plan", *words, "limit=3")
    assert "calls expected" not in succeed("run", *words, "limit=2")
    assert "calls expected" in succeed("run", *words, "limit=3")
    other = (*six[:-1], "methods=closed_book", *words[len(six) :])
    succeed("plan", *other, "limit=3")
    assert "calls expected" not in succeed("report", f"warehouse={tmp_path}", "run=r")
