"""`gistmill plan`: what it takes, refuses and rests on; and a run makes near what was expected."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pipeline.core.compose import compose
from pipeline.store.runs.run_folder import RunFolder
from tests.support.command import DATA, QMSUM, refused, sql, succeed
from tests.support.texts.small_corpus import UNIFORM, document, question, write

Words = tuple[str, ...]
MODEL = ("engine=vllm", "engine.model=some/model-8B")
MEASURES = ("calls", "prompt_tokens", "uncached_tokens", "reply_tokens")
Stages = dict[str, dict[str, Any]]


def planned(*words: str | Path) -> dict[str, Any]:
    return dict(json.loads(succeed("plan", *words, "--json")))


def stages(plan: dict[str, Any]) -> Stages:
    return {row["stage"]: row for row in plan["stages"]}


def totals(warehouse: Path) -> Stages:
    """What the calls of the run add up to, by stage."""
    query = """select stage, count(*) as calls, sum(prompt_tokens)::bigint as prompt_tokens,
        sum(prompt_tokens - cached_tokens)::bigint as uncached_tokens,
        sum(reply_tokens)::bigint as reply_tokens
        from calls where not is_shared group by stage"""
    return {row["stage"]: row for row in sql(warehouse, query)}


def since(after: Stages, before: Stages) -> Stages:
    """What was made between the two."""
    nothing = dict.fromkeys(MEASURES, 0)
    more = {
        stage: {m: row[m] - before.get(stage, nothing)[m] for m in MEASURES}
        for stage, row in after.items()
    }
    return {stage: row for stage, row in more.items() if row["calls"]}


def over_budget(plan: dict[str, Any], outcome: Stages) -> list[str]:
    """Every stage that was not planned, or whose replies were longer than their budgets on average:
    it may have made more calls, or fewer, than were expected."""
    missed, planned_stages = [], stages(plan)
    for stage, row in outcome.items():
        own = planned_stages.get(stage)
        calls = own["expected"]["calls"] if own else 0
        if not own or row["reply_tokens"] * calls > own["budgets"]["reply_tokens"] * row["calls"]:
            missed.append(f"{stage}: {row}, planned {own}")
    return missed


def off(plan: dict[str, Any], outcome: Stages, share: float, measures: Sequence[str]) -> list[str]:
    """Every number that is off what was expected by more than that."""
    missed, ranges = [], stages(plan)
    for stage in {**ranges, **outcome}:
        for measure in measures:
            expected = ranges[stage]["expected"][measure] if stage in ranges else 0
            was = outcome[stage][measure] if stage in outcome else 0
            if abs(expected - was) > share * was:
                missed.append(f"{stage} {measure}: {was}, expected {expected}")
    return missed


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Words:
    """Six documents of three pages, a question each."""
    folder, numbers = tmp_path_factory.mktemp("corpus"), range(1, 7)
    write(folder, [document(n) for n in numbers], [question(n, of=n) for n in numbers])
    return ("corpus=tables", f"corpus.path={folder}", *UNIFORM, "methods=gist_only")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--rates", "fast"), "rates fast: write PREFILL,DECODE in tokens a second"),
        (("--rates", "1000"), "rates 1000: write PREFILL,DECODE in tokens a second"),
        (("--rates", "0,5"), "--rates 0,5: both must be above 0"),
        (("--price", "cheap"), "price cheap: write PROMPT,REPLY[,CACHED] in money a million"),
        (("--price", "1,2,3,4"), "price 1,2,3,4: write PROMPT,REPLY[,CACHED]"),
        (("--price", "1,-2"), "price 1,-2: write PROMPT,REPLY[,CACHED]"),
        (("--gpus", "1", *MODEL, "engine.args.tensor_parallel_size=2"),
         "--gpus 1: an engine needs 2; raise it"),
        (("corpus.path=/nowhere/books",), "/nowhere/books: no such file or folder"),
        (("engine=none",), "engine=none: no such choice"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line(tmp_path: Path, corpus: Words, words: Words, complaint: str) -> None:
    assert complaint in refused("plan", *corpus, f"warehouse={tmp_path}", *words)
    assert [*tmp_path.iterdir()] == []


def phase(*words: str | Path) -> dict[str, Any]:
    (only_phase,) = planned(*words)["phases"]
    return dict(only_phase)


@pytest.mark.slow
def test_rates_are_divided_by_and_prices_multiplied(tmp_path: Path, corpus: Words) -> None:
    words = (*corpus, f"warehouse={tmp_path}")
    plan = planned(*words, "--rates", "1000,50", "--price", "3,15")
    prompt = plan["all"]["expected"]
    for which in ("expected", "budgets"):
        own = plan["all"][which]
        hours = (prompt["uncached_tokens"] / 1000 + own["reply_tokens"] / 50) / 3600
        assert plan["phases"][0]["hours"][which] == pytest.approx(hours, rel=0.01)
        money = (3 * prompt["prompt_tokens"] + 15 * own["reply_tokens"]) / 1e6
        assert own["money"] == pytest.approx(money)
        assert sum(row[which]["money"] for row in plan["stages"]) == pytest.approx(money)
    cached = planned(*words, "--price", "3,15,0.3", *MODEL)["all"]["expected"]
    num_cached = cached["prompt_tokens"] - cached["uncached_tokens"]
    assert num_cached > 0
    money = 3 * cached["uncached_tokens"] + 0.3 * num_cached + 15 * cached["reply_tokens"]
    assert cached["money"] == pytest.approx(money / 1e6)
    alone = planned(*words)
    assert alone["all"]["expected"]["money"] is None
    assert alone["phases"][0]["hours"] is None, "nobody knows how fast words are counted"
    assert "add --rates PREFILL,DECODE" in succeed("plan", *words)


def test_more_gpus_are_fewer_hours_and_as_many_gpu_hours(tmp_path: Path, corpus: Words) -> None:
    words = (*corpus, *MODEL, f"warehouse={tmp_path}", "engine.args.tensor_parallel_size=2",
             "--rates", "5000,500")  # fmt: skip
    two, eight = phase(*words, "--gpus", "2"), phase(*words, "--gpus", "9")
    assert (two["engines"], eight["engines"]) == (1, 4)
    for which in ("expected", "budgets"):
        # What the cache holds is a little different each time: who comes first is chance.
        assert two["hours"][which] == pytest.approx(4 * eight["hours"][which], rel=0.2)
        assert two["gpu_hours"][which] == pytest.approx(2 * two["hours"][which])
        assert eight["gpu_hours"][which] == pytest.approx(8 * eight["hours"][which])
    assert phase(*words[:-2], "--gpus", "2")["hours"] is None, "nobody has measured the model"


@pytest.mark.slow
def test_the_rest_of_a_run_is_planned_by_its_own_clock(tmp_path: Path, corpus: Words) -> None:
    words = (*corpus, f"warehouse={tmp_path}", "run=r")
    succeed("run", *words, "limit=4")
    folder = RunFolder(tmp_path, "r")
    (launch,) = folder.launches()
    taken = {"workers": 2, "prompt_tokens": 1000, "cached_tokens": 400, "reply_tokens": 30}
    clock = [("reading: memory", 100.0), ("reading: questions", 50.0), ("scoring", 900.0)]
    phases = [{"phase": name, "seconds": seconds, **taken} for name, seconds in clock]
    timed = {"launches": [{**launch, "phases": phases}]}
    (folder.path / "provenance.json").write_text(json.dumps(timed))
    found = phase(*words)
    # Two workers were at it for 150 s; a reply's token counts ten of a prompt's.
    assert found["prefill_tokens_per_second"] == pytest.approx(2 * (600 + 10 * 30) / 300)
    assert found["decode_tokens_per_second"] == found["prefill_tokens_per_second"] / 10


@pytest.mark.slow
def test_every_shipped_engine_has_a_plan(tmp_path: Path, corpus: Words) -> None:
    script = tmp_path / "script.yaml"
    script.write_text("replies: [{reply: 'no'}]\nstart_fails: a plan starts no engine\n")
    for words in (
        ("engine=scripted", f"engine.script={script}"),
        ("engine=openai", "engine.base_url=http://127.0.0.1:9/v1", "engine.model=m"),
        MODEL,
        (*MODEL, "engine.thinking_tokens=500", "engine.args.reasoning_parser=qwen3"),
    ):
        plan = planned(*corpus, *words, f"warehouse={tmp_path}")
        assert stages(plan).keys() == {"gist", "answer", "rate"}
    # What may be thought before each of the 36 replies is in it, half of it expected. By hand: 18
    # gists of 512 tokens each, 6 answers of 512, 12 verdicts of 16.
    assert plan["all"]["budgets"]["reply_tokens"] == 36 * 500 + 24 * 512 + 12 * 16
    assert 36 * 250 < plan["all"]["expected"]["reply_tokens"] < 36 * 300
    assert compose(["engine=vllm", "engine.model=m"])["engine"]["context_tokens"] is None


def test_a_prompt_that_cannot_fit_is_not_expected(tmp_path: Path, corpus: Words) -> None:
    """Documents of 120 words in a context of 600 tokens, of which an answer may have 512."""
    words = (*corpus[:-1], "methods=full_text,closed_book", f"warehouse={tmp_path}", "rater=none")
    fits, tight = (
        {step["method"]: step["expected"]["calls"] for step in planned(*words, *more)["steps"]}
        for more in ((), ("engine.context_tokens=600",))
    )
    assert fits["full_text"] == fits["closed_book"] == 6
    assert (tight["full_text"], tight["closed_book"]) == (0, 6)


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
    was = totals(tmp_path)
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
    before = totals(tmp_path)
    more = "methods=full_text,bm25(top_k=2),oracle_pages(top_k=1),readagent_p(max_pages=3)"
    plan = planned(*words, more)
    succeed("run", *words, more)
    was = since(totals(tmp_path), before)
    assert over_budget(plan, was) == []
    assert stages(plan).keys() == {"look_up", "answer", "rate"}
    query = """select step_id, count(*) as calls, sum(prompt_tokens)::bigint as tokens
        from calls where stage in ('look_up', 'answer') group by step_id"""
    by_step = {row["step_id"]: row for row in sql(tmp_path, query)}
    for step in plan["steps"]:
        if step["stage"] == "rate":  # shows the answer, so that its prompt is not known
            continue
        assert step["expected"]["calls"] == by_step[step["step_id"]]["calls"]
        if step["stage"] == "look_up" or "readagent" not in step["method"]:
            assert step["expected"]["prompt_tokens"] == by_step[step["step_id"]]["tokens"]
    # A document more: the others are done.
    plan = planned(*words, more, "limit=3")
    assert plan["corpus"] == {**plan["corpus"], "documents": 3, "documents_to_do": 1}


@pytest.mark.slow
def test_a_killed_runs_plan_is_of_the_rest(tmp_path: Path, corpus: Words) -> None:
    """As if killed between the calls of a unit and its rows, and before any of another's."""
    words = (*corpus, "limit=3", f"warehouse={tmp_path}", "run=r")
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


def test_a_plan_writes_nothing(tmp_path: Path, corpus: Words) -> None:
    planned(*corpus, f"warehouse={tmp_path}")
    assert [*tmp_path.iterdir()] == []
