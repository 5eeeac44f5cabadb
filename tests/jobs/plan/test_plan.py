"""`gistmill plan`: what it refuses and rests on, and that a run makes near what is expected."""

import json
from pathlib import Path
from typing import Any

import pytest

from jobs.graph.preparation import Prepared, prepare
from jobs.graph.resolved_run import read_run
from jobs.plan import estimate as counting
from jobs.plan.estimate import CountingEngine, DryRunShards, TokenCounts, estimate, token_counts
from pipeline.core.compose import compose
from pipeline.engines.vllm import VllmSettings
from pipeline.engines.vllm.chat_tokenizer import local_chat_tokenizer
from pipeline.files.storage import as_path
from pipeline.store.runs.run_folder import RunFolder
from tests.support.command import DATA, QMSUM, refused, sql, succeed
from tests.support.engines.tiny_model import make_tokenizer
from tests.support.texts.small_corpus import UNIFORM, document, question, write

Words = tuple[str, ...]
MODEL = ("engine=vllm", "engine.model=some/model-8B")


def planned(*words: str | Path) -> dict[str, Any]:
    return dict(json.loads(succeed("plan", *words, "--json")))


def stages(plan: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["stage"]: row for row in plan["stages"]}


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
    two, eight = phase(*words, "--gpus", "1"), phase(*words, "--gpus", "9")
    assert (two["engines"], two["gpus"], eight["engines"]) == (1, 2, 4), "one engine at least"
    for which in ("expected", "budgets"):
        # What the cache holds is a little different each time: who comes first is chance.
        assert two["hours"][which] == pytest.approx(4 * eight["hours"][which], rel=0.2)
        assert two["gpu_hours"][which] == pytest.approx(2 * two["hours"][which])
        assert eight["gpu_hours"][which] == pytest.approx(8 * eight["hours"][which])
    assert phase(*words[:-2], "--gpus", "2")["hours"] is None, "nobody has measured the model"
    assert [*tmp_path.iterdir()] == []


def test_the_replies_of_a_killed_run_stay(tmp_path: Path, corpus: Words) -> None:
    """A plan neither deletes a unit's journal nor writes what its counting engine replies there."""
    words = (*corpus, *MODEL, f"warehouse={tmp_path}", "run=r")
    folder = as_path(tmp_path)
    prepared = prepare(read_run(words), folder, lambda line: None, DryRunShards(folder))
    asking = {step.id for step in prepared.run.steps if step.prompts}
    units = [u for d in prepared.plan.documents() for u in d.units if u.step_id in asking]
    journals = [
        tmp_path / "journal" / u.step_id / f"{u.unit}.{u.attempt}.0.jsonl" for u in units[::2]
    ]
    for file in journals:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("the killed run's")
    planned(*words)
    left = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert sorted(left) == sorted(journals)
    assert {file.read_text() for file in left} == {"the killed run's"}


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
    assert [*tmp_path.iterdir()] == [], "a plan writes nothing"


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
    """The extractive engine breaks, shortens and looks up much as is expected. No reply is longer
    than its budget on average, however many calls there are."""
    words = (*CORPORA[name], f"warehouse={tmp_path}")
    plan = planned(*words)
    assert "nothing is scaled" in plan["assumptions"][0]
    succeed("run", *words)
    rows = sql(tmp_path, """select stage, count(*) as calls,
        sum(prompt_tokens)::bigint as prompt_tokens, sum(reply_tokens)::bigint as reply_tokens
        from calls where not is_shared group by stage""")  # fmt: skip
    # The book has seven windows if each ends in its middle, of which the engine needs five; and of
    # pages so long it says less than is expected of a model, as it does of segments.
    measures = ("calls",) if name == "books" else ("calls", "prompt_tokens")
    share = 0.5 if name in ("books", "trees") else 0.35
    expected = {s: row for s, row in stages(plan).items() if row["expected"]["calls"]}
    assert {row["stage"] for row in rows} == {*expected}
    for row in rows:
        of_stage = expected[row["stage"]]
        for measure in measures:
            assert of_stage["expected"][measure] == pytest.approx(row[measure], rel=share), row
        budget = of_stage["budgets"]["reply_tokens"] / of_stage["expected"]["calls"]
        assert row["reply_tokens"] / row["calls"] <= budget, row
    there = sum(file.stat().st_size for file in (tmp_path / "tables").rglob("*.parquet"))
    if name != "books":  # before the book come documents without a story, which are not counted
        assert sum(plan["disk"].values()) == pytest.approx(there, rel=0.33)


@pytest.mark.slow
def test_where_pages_and_gists_stand_calls_and_prompts_are_exact(tmp_path: Path) -> None:
    """Then only replies and what a model looks up are not determined."""
    words = (*MEETINGS, f"warehouse={tmp_path}")
    succeed("run", *words, "methods=gist_only")
    assert "nothing is left" in succeed("plan", *words, "methods=gist_only")
    more = "methods=full_text,bm25(top_k=2),oracle_pages(top_k=1),readagent_p(max_pages=3)"
    plan = planned(*words, more)
    succeed("run", *words, more)
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
    assert (plan["corpus"]["documents"], plan["corpus"]["documents_to_do"]) == (3, 1)


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


def test_some_documents_stand_for_all_of_each_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By hand: of five documents of 30 to 150 words two are counted for the words and questions of
    all; of ten one, and the shortest, which alone has a question, for its answer."""
    monkeypatch.setattr(counting, "_MAX_WORDS", 0)

    def prepared(num_counted: int, num_documents: int, *questions: dict[str, Any]) -> Prepared:
        monkeypatch.setattr(counting, "_MIN_DOCUMENTS", num_counted)
        numbers = range(1, num_documents + 1)
        write(tmp_path, [{**document(n), "text": "word " * 30 * n} for n in numbers], [*questions])
        corpus = ("corpus=tables", f"corpus.path={tmp_path}", *UNIFORM)
        words = ("methods=gist_only", "rater=none", f"warehouse={tmp_path / 'w'}")
        resolved = read_run([*corpus, *words])
        shards = DryRunShards(resolved.config.warehouse)
        return prepare(resolved, resolved.config.warehouse, lambda line: None, shards)

    asked = [question(10 * of + n, of=of) for of in range(1, 6) for n in range(of)]
    made = prepared(2, 5, *asked)
    sample = estimate(made).sample
    assert sample.num_documents == 5 and {*sample.scale.values()} != {1}
    assert [document.num_words for document in sample.documents] == [60, 150]
    names = {step.id: step.name for step in made.run.steps}
    scale = {names[step_id]: scale for step_id, scale in sample.scale.items()}
    assert scale["gist"] == pytest.approx((30 + 60 + 90 + 120 + 150) / (60 + 150))
    assert scale["answer"] == pytest.approx((1 + 2 + 3 + 4 + 5) / (2 + 5))

    made = prepared(1, 10, question(1, of=1))
    estimated = estimate(made)
    assert [document.num_words for document in estimated.sample.documents] == [30, 180]
    (answer,) = [step for step in made.run.steps if step.name == "answer"]
    assert estimated.costs[answer.id][0] == 1


TEXT = "The grandmothers of the remote control want it in yellow rubber, with fewer buttons. " * 40


def settings(folder: Path) -> VllmSettings:
    return VllmSettings.model_validate(compose(["engine=vllm", f"engine.model={folder}"])["engine"])


def assumptions(folder: Path) -> str:
    """The lines of the plan of a small run of the model in `folder`."""
    model = ("engine=vllm", f"engine.model={folder}", f"warehouse={folder / 'w'}")
    plan = planned(*MEETINGS, *model, "methods=gist_only", "rater=none")
    return "\n".join(plan["assumptions"])


@pytest.mark.vllm
def test_a_local_tokenizer_counts(tmp_path: Path) -> None:
    make_tokenizer(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    counts = token_counts(settings(tmp_path), [TEXT[:2000]])
    chat = local_chat_tokenizer(str(tmp_path), settings(tmp_path))
    assert chat is not None
    asked = chat.tokenize([{"role": "user", "content": TEXT}])
    assert counts.of([{"role": "user", "content": TEXT}]) == pytest.approx(len(asked), rel=0.03)
    assert "the model's tokenizer" in counts.how
    assert "the model's tokenizer on some documents" in assumptions(tmp_path)


def test_without_one_tokens_are_estimated(tmp_path: Path) -> None:
    """A quarter of the bytes, and it says so; Chinese takes three bytes a sign."""
    (tmp_path / "config.json").write_text("{}")
    counts = token_counts(settings(tmp_path), [TEXT])
    assert counts.how.startswith("estimated, no tokenizer on this machine")
    assert counts.of_text("a" * 400) == 100
    assert counts.of_text("\u78e8" * 400) == 300
    assert "\ntokens of reading: estimated" in assumptions(tmp_path)


def test_a_prompt_finds_what_an_earlier_one_began_with(tmp_path: Path) -> None:
    engine = CountingEngine(settings(tmp_path), TokenCounts(len, 0, ""))
    begin = "".join(f"{n:04}" for n in range(160))  # 640 characters, none of it twice
    assert engine.cached_share(begin + "x" * 360) == 0
    assert engine.cached_share(begin + "y" * 360) == 0.64
    assert engine.cached_share(begin[::-1]) == 0
