"""A plan holds: what a run makes is within what was planned, on real corpora and engines."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.command import DATA, QMSUM, ROOT, refused, sql, succeed
from tests.plans import files, made, outside, planned, since, stages
from tests.small_corpus import UNIFORM, document, question, write

pytestmark = pytest.mark.slow

METHODS = (
    "methods=gist_only,readagent_p(max_pages=3),readagent_s(max_pages=3),bm25(top_k=2),"
    "oracle_pages(top_k=1),closed_book,constant"
)
MEETINGS = ("corpus=qmsum", f"corpus.path={QMSUM}", "run=r", METHODS)
BOOKS = (
    "corpus=narrativeqa", f"corpus.path={DATA / 'narrativeqa'}", "run=r",
    "methods=gist_only,readagent_p(max_pages=2),readagent_s(max_pages=2)",
)  # fmt: skip
QUALITY = (
    "corpus=quality", f"corpus.path={DATA / 'quality' / 'QuALITY.one_record.jsonl'}", "run=r",
    "methods=gist_only,readagent_p(max_pages=2),closed_book",
)  # fmt: skip
HISTORIES = (
    "corpus=longmemeval", "run=r", "methods=gist_only",
    f"corpus.path={DATA / 'longmemeval' / 'longmemeval_oracle_16.json'}",
)  # fmt: skip
FAST = (
    "engine=simulated", "engine.decode_tokens_per_second=100000", "engine.max_workers=1",
    "max_fallback_rate=1",
    "engine.prefill_tokens_per_second=10000000", "engine.kv_tokens=1000000",
)  # fmt: skip


def hold(warehouse: Path, *words: str, code: int = 0) -> dict[str, Any]:
    """Plan and run; all must be within the plan, which is returned."""
    place = f"warehouse={warehouse}"
    plan = planned(*words, place)
    succeed("run", *words, place, code=code)
    assert outside(plan, made(warehouse)) == []
    return plan


@pytest.mark.parametrize(
    "words",
    [
        (*MEETINGS, "limit=2", "memory=uniform"),
        (*MEETINGS, "limit=2", *FAST, "engine.openings.look_up_s='Page 1'"),
        (*MEETINGS, "limit=2", *FAST, "reply_format=constrained"),
        (*QUALITY,),
        (*QUALITY, *FAST, "reply_format=constrained"),
        (*HISTORIES, "limit=6"),
    ],
    ids=["uniform", "simulated", "constrained", "choice", "choice-constrained",
         "histories"],
)  # fmt: skip
def test_what_a_run_makes_is_within_its_plan(tmp_path: Path, words: tuple[str, ...]) -> None:
    plan = hold(tmp_path, *words)
    assert plan["corpus"]["documents_to_do"] == plan["sample"]["documents"]


def test_a_sample_speaks_for_the_rest(tmp_path: Path) -> None:
    plan = hold(tmp_path, *MEETINGS, "sample=20", "methods=gist_only", "rater=none")
    assert plan["sample"]["documents"] < 20
    assert stages(plan).keys() == {"paginate", "gist", "answer"}


def test_books_and_film_scripts_have_a_plan_too(tmp_path: Path) -> None:
    plan = hold(tmp_path, *BOOKS, "corpus.split=test", "limit=1")
    assert plan["corpus"]["words"] > 10_000


@pytest.mark.parametrize(("context", "is_sure"), [(700, True), (2500, False)])
def test_prompts_that_may_not_fit_may_not_be_asked(
    tmp_path: Path, context: int, is_sure: bool
) -> None:
    """In 700 tokens not even gists of a word have room; in 2500 it depends on the gists."""
    words = (*MEETINGS, "limit=2", f"engine.context_tokens={context}")
    plan = hold(tmp_path, *words, "memory=uniform", "memory.words=150", code=3)
    low, _, high = stages(plan)["look_up"]["calls"]
    assert (low == high == 0) if is_sure else (low < high)


def test_once_pages_stand_calls_are_known(tmp_path: Path) -> None:
    place = f"warehouse={tmp_path}"
    words = (*MEETINGS[:2], "sample=15", "memory=uniform", place)
    succeed("run", *words, "methods=constant", "rater=none", "run=r")
    # Pages and gists are made for every method, so gists alone are made anew by another budget.
    gists = (
        "memory.gist_reply_tokens=400", "run=s",
        "methods=gist_only,readagent_p(max_pages=2),readagent_s(max_pages=2),oracle_pages(top_k=1)",
    )  # fmt: skip
    plan = planned(*words, *gists)
    succeed("run", *words, *gists)
    assert outside(plan, made(tmp_path, "s")) == []
    assert plan["sample"]["documents"] < 15
    counts = sql(tmp_path, "select step_id, count(*) as n from calls group by step_id", "run=s")
    made_by = {row["step_id"]: row["n"] for row in counts}
    known = {i: s for i, s in plan["steps"].items() if "readagent_s" not in (s["method"] or "")}
    assert {step["stage"] for step in known.values()} == {"gist", "look_up", "answer", "rate"}
    for step_id, step in known.items():
        assert made_by[step_id] == pytest.approx(step["calls"][1], rel=0.1), step


def test_only_what_is_left_is_planned(tmp_path: Path) -> None:
    one = (*MEETINGS[:3], f"warehouse={tmp_path}", "methods=gist_only")
    succeed("run", *one, "limit=2")
    assert "nothing is left" in succeed("plan", *one, "limit=2")
    # Other methods of a finished run read nothing again.
    before = made(tmp_path)
    words = (*MEETINGS, f"warehouse={tmp_path}")
    plan = planned(*words, "limit=2")
    assert stages(plan).keys() == {"look_up", "answer", "rate"}
    succeed("run", *words, "limit=2")
    assert outside(plan, since(made(tmp_path), before)) == []
    before = made(tmp_path)
    plan = planned(*words, "limit=4")
    assert plan["corpus"]["documents_to_do"] == 2
    succeed("run", *words, "limit=4")
    assert outside(plan, since(made(tmp_path), before)) == []
    report = succeed("report", f"warehouse={tmp_path}", "run=r", "--json")
    told = {row["stage"]: row for row in json.loads(report)["planned"]["stages"]}
    for stage, row in since(made(tmp_path), before).items():
        assert told[stage]["calls"]["made"] == row["calls"]
        assert told[stage]["prompt_tokens"]["made"] == row["prompt_tokens"]


def test_hours_are_of_the_clocks_size(tmp_path: Path) -> None:
    """One simulated engine, slow enough that the pipeline's own time is little beside it."""
    words = (
        *MEETINGS[:3], "limit=2", "methods=gist_only,full_text", "engine=simulated", "rater=none",
        "engine.prefill_tokens_per_second=20000", "engine.decode_tokens_per_second=200",
        "engine.max_workers=1", "max_fallback_rate=1", f"warehouse={tmp_path}",
    )  # fmt: skip
    plan = planned(*words)
    succeed("run", *words)
    (row,) = sql(tmp_path, "select sum(seconds) as seconds from calls")
    (phase,) = plan["phases"]
    low, likely, high = (hours * 3600 for hours in phase["hours"])
    assert low < row["seconds"] / 8 < high  # eight sequences at once, at best
    assert likely == pytest.approx(row["seconds"] / 8, rel=0.7)


def test_disk_is_within_a_third(tmp_path: Path) -> None:
    plan = hold(tmp_path, *MEETINGS, "limit=3")
    assert plan["corpus"]["documents_to_do"] == plan["sample"]["documents"]
    there = sum(file.stat().st_size for file in (tmp_path / "tables").rglob("*.parquet"))
    assert sum(plan["disk"].values()) == pytest.approx(there, rel=0.33)


def test_a_plan_leaves_itself_and_nothing_else(tmp_path: Path) -> None:
    corpus, warehouse = tmp_path / "corpus", tmp_path / "warehouse"
    write(corpus, [document(1), document(2)], [question(1, of=1), question(2, of=2)])
    words = ("corpus=tables", f"corpus.path={corpus}", *UNIFORM, f"warehouse={warehouse}")
    plan = planned(*words)
    assert files(warehouse) == {f"runs/{plan['run']}/plan.json"}
    assert "no run there" in refused("report", f"warehouse={warehouse}")
    succeed("run", *words)
    there = files(warehouse)
    succeed("plan", *words, "run=other", "methods=closed_book")
    assert files(warehouse) - there == {"runs/other/plan.json"}
    runs = json.loads(succeed("ls", f"warehouse={warehouse}", "--json"))["runs"]
    assert [row["run"] for row in runs] == [plan["run"]]


def test_a_plan_starts_no_ray_and_takes_seconds(tmp_path: Path) -> None:
    """In a process of its own, as another test may have imported ray."""
    code = (
        "import sys; from jobs.cli import main\n"
        f"sys.argv = ['gistmill', 'plan', 'warehouse={tmp_path}']\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code, end\n"
        "assert not {'ray', 'vllm', 'torch'} & set(sys.modules)"
    )
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "paginate" in done.stdout
    assert time.monotonic() - start < 60
