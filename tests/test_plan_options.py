"""What `gistmill plan` takes, refuses, and rests its hours on; and what it leaves for others."""

import json
from pathlib import Path

import pytest
from jobs.plan.numbers import short, span
from jobs.plan.rates import params_of
from jobs.plan.weights import weights
from stages.planning import Prefixes

from jobs.config import read_config
from jobs.loading import chosen
from pipeline.config import compose
from pipeline.store.runs import RunFolder
from pipeline.units import DocumentKey
from tests.command import QMSUM, refused, sql, succeed
from tests.plans import files, planned, stages
from tests.small_corpus import UNIFORM, document, question, write

MEETINGS = ("corpus=qmsum", f"corpus.path={QMSUM}", "limit=2", "methods=gist_only,full_text")
Words = tuple[str, ...]
MODEL = ("engine=vllm", "engine.model=some/model-8B")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Words:
    """Six documents of three pages, a question each."""
    folder = tmp_path_factory.mktemp("corpus")
    numbers = range(1, 7)
    write(folder, [document(n) for n in numbers], [question(n, of=n) for n in numbers])
    return ("corpus=tables", f"corpus.path={folder}", *UNIFORM, "methods=gist_only")


@pytest.fixture(scope="module")
def done(corpus: Words, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse with a plan of all six documents and a run of four of them: `r`."""
    warehouse = tmp_path_factory.mktemp("done")
    words = (*corpus, "limit=4", "run=r", f"warehouse={warehouse}")
    succeed("plan", *words)
    succeed("run", *words)
    return warehouse


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--gpu", "abacus"), "--gpu abacus: not known; it is one of h200"),
        (("--rates", "fast"), "--rates fast: write PREFILL,DECODE in tokens a second"),
        (("--rates", "1000"), "--rates 1000: write PREFILL,DECODE in tokens a second"),
        (("--rates", "0,5"), "--rates 0,5: both must be above 0"),
        (("--like", "nobody"), "no run there"),
        (("--gpus", "1", *MODEL, "engine.args.tensor_parallel_size=2"),
         "--gpus 1: an engine needs 2; raise it"),
        ((*MODEL, "--params", "405"), "--gpu h100: 405 billion parameters take 810 GB"),
        (("corpus.path=/nowhere/books",), "/nowhere/books: no such file or folder"),
        (("engine=none",), "engine=none: there is none"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line(tmp_path: Path, corpus: Words, words: Words, complaint: str) -> None:
    assert complaint in refused("plan", *corpus, f"warehouse={tmp_path}", *words)
    assert files(tmp_path) == set()


def test_a_run_of_another_engine_is_no_example(done: Path, corpus: Words) -> None:
    line = refused("plan", *corpus, f"warehouse={done}", "engine=simulated", "--like", "r")
    assert line.startswith("--like r: extractive read it, now simulated shall")


def test_a_run_made_otherwise_cannot_be_planned_on(done: Path, corpus: Words) -> None:
    words = (*corpus, "memory.words=30", "run=r", f"warehouse={done}")
    assert "run=r was made otherwise: memory.words 40 -> 30" in refused("plan", *words)


def hours(*words: str | Path) -> list[float]:
    (phase,) = planned(*words)["phases"]
    found: list[float] = phase["hours"]
    return found


def test_rates_of_the_command_line_are_divided_by(tmp_path: Path, corpus: Words) -> None:
    words = (*corpus, f"warehouse={tmp_path}")
    plan = planned(*words, "--rates", "1000,50")
    for place in range(3):
        uncached, reply = (
            sum(row[measure][place] for row in plan["stages"])
            for measure in ("uncached_tokens", "reply_tokens")
        )
        expected = (uncached / 1000 + reply / 50) / 3600
        assert plan["phases"][0]["hours"][place] == pytest.approx(expected, rel=0.01)
    assert hours(*words) is None, "nobody knows how fast words are counted"
    assert "add --like RUN, --rates PREFILL,DECODE" in succeed("plan", *words)


def test_more_gpus_are_fewer_hours_and_as_many_gpu_hours(tmp_path: Path, corpus: Words) -> None:
    words = (*corpus, *MODEL, f"warehouse={tmp_path}", "engine.args.tensor_parallel_size=2")
    (two,) = planned(*words, "--gpus", "2")["phases"]
    (eight,) = planned(*words, "--gpus", "9", "--gpu", "h100")["phases"]
    assert (two["engines"], eight["engines"]) == (1, 4)
    for place in range(3):
        # What the cache holds is a little different each time: who comes first is chance.
        assert two["hours"][place] == pytest.approx(4 * eight["hours"][place], rel=0.2)
        assert two["gpu_hours"][place] == pytest.approx(2 * two["hours"][place])
        assert eight["gpu_hours"][place] == pytest.approx(8 * eight["hours"][place])
    assert "data sheet of 2 x h100 for 8B, not measured" in two["rates"]
    assert hours(*words, "--gpu", "h200", "--gpus", "2")[1] < two["hours"][1]


def test_prompts_are_worked_out_at_half_of_what_the_data_sheet_says(
    tmp_path: Path, corpus: Words
) -> None:
    """An H100 has 989 TFLOP/s; a token of 8 billion parameters takes 16 billion operations."""
    (phase,) = planned(*corpus, *MODEL, f"warehouse={tmp_path}", "--gpu", "h100")["phases"]
    assert phase["prefill_tokens_per_second"] == pytest.approx(0.5 * 989e12 / 16e9)
    assert phase["decode_tokens_per_second"] < phase["prefill_tokens_per_second"]


def test_a_model_that_does_not_say_its_size_has_no_hours(tmp_path: Path, corpus: Words) -> None:
    words = (*corpus, "engine=vllm", "engine.model=some/model", f"warehouse={tmp_path}")
    assert hours(*words) is None
    assert "--params BILLIONS" in succeed("plan", *words)
    assert hours(*words, "--params", "8")


@pytest.mark.parametrize(
    ("model", "billions"),
    [
        ("Qwen/Qwen3-8B", 8), ("meta-llama/Llama-3.2-1B-Instruct", 1), ("Qwen3-30B-A3B", 30),
        ("mistralai/Mixtral-8x7B-v0.1", 56), ("qwen2.5-0.5b", 0.5), ("microsoft/phi-4", None),
    ],
)  # fmt: skip
def test_a_models_size_is_in_its_name(model: str, billions: float | None) -> None:
    assert params_of(model) == billions


def test_a_former_run_tells_habits_and_rates(done: Path, corpus: Words) -> None:
    words = (*corpus, f"warehouse={done}", "run=s", "methods=bm25(top_k=1)", "--like", "r")
    assert "its reading phases by the clock" in planned(*words)["phases"][0]["rates"]
    (asked,) = sql(
        done, "select sum(reply_tokens) as tokens from calls where stage = 'gist'", "run=r"
    )
    # Made anew for six documents instead of four; its gists are as long as their short pages.
    anew = "memory.gist_reply_tokens=500"
    usual, like = (stages(planned(*w, anew))["gist"] for w in (words[:-2], words))
    assert like["reply_tokens"][1] == pytest.approx(1.5 * asked["tokens"], rel=0.1)
    assert usual["reply_tokens"][1] < 0.3 * like["reply_tokens"][1]


def test_phases_by_the_clock_go_before_calls(done: Path, corpus: Words) -> None:
    folder = RunFolder(done, "r")
    before = (folder.path / "provenance.json").read_text()
    (launch,) = folder.launches()
    phases = [
        {"phase": "reading: memory", "seconds": 100.0, "workers": 2},
        {"phase": "reading: questions", "seconds": 50.0, "workers": 2},
        {"phase": "scoring", "seconds": 900.0, "workers": 2},
    ]
    timed = {"launches": [{**launch, "phases": phases}]}
    (folder.path / "provenance.json").write_text(json.dumps(timed))
    try:
        words = (*corpus, f"warehouse={done}", "run=s", "methods=full_text", "--like", "r")
        (phase,) = planned(*words)["phases"]
        report = json.loads(succeed("report", f"warehouse={done}", "run=r", "--json"))
    finally:
        (folder.path / "provenance.json").write_text(before)
    (tokens,) = sql(done, "select sum(prompt_tokens) as prompt, sum(reply_tokens) as reply "
                    "from calls where stage <> 'rate'", "run=r")  # fmt: skip
    # Two workers were at it for 150 s; a reply's token counts ten of a prompt's.
    expected = (tokens["prompt"] + 10 * tokens["reply"]) / 300
    assert phase["prefill_tokens_per_second"] == pytest.approx(expected)
    assert "by the clock" in phase["rates"]
    assert report["planned"]["took"] == pytest.approx(150 / 3600)


def test_without_a_clock_calls_tell_the_rates(done: Path, corpus: Words) -> None:
    """As of a run whose command was killed before a phase was over."""
    folder = RunFolder(done, "r")
    before = (folder.path / "provenance.json").read_text()
    launches = [{k: v for k, v in made.items() if k != "phases"} for made in folder.launches()]
    (folder.path / "provenance.json").write_text(json.dumps({"launches": launches}))
    try:
        words = (*corpus, f"warehouse={done}", "run=s", "methods=full_text", "--like", "r")
        (phase,) = planned(*words)["phases"]
    finally:
        (folder.path / "provenance.json").write_text(before)
    assert "the seconds of its calls by the engine's sequences" in phase["rates"]


def test_a_report_sets_the_plan_beside_what_happened(done: Path) -> None:
    report = succeed("report", f"warehouse={done}", "run=r")
    assert "for 4 documents; made since:" in report
    (table,) = [part for part in report.split("\n\n") if "calls planned" in part]
    rows = {line.split("|")[1].strip(): line.split("|") for line in table.splitlines()}
    # By hand: 12 pages, 4 answers and each of them rated twice.
    for stage, calls in (("gist", "12"), ("answer", "4"), ("rate", "8")):
        assert rows[stage][2].strip() == rows[stage][4].strip() == calls


def test_a_report_without_a_plan_says_nothing_of_one(tmp_path: Path, corpus: Words) -> None:
    words = (*corpus, "limit=1", f"warehouse={tmp_path}")
    assert "planned" not in succeed("run", *words)
    report = json.loads(succeed("report", f"warehouse={tmp_path}", "--json"))
    assert report["planned"] is None


def test_weights_add_up_to_the_plan(tmp_path: Path) -> None:
    """Of a corpus that is sampled whole: tokens of prompts, and ten for each of a reply."""
    words = ("corpus=qmsum", f"corpus.path={QMSUM}", "limit=6", "methods=gist_only,full_text")
    plan = planned(*words, f"warehouse={tmp_path}")
    keys = [DocumentKey.of(one.document, one.questions) for one in chosen(read_config(words))]
    found = weights(plan, keys)["reading"]
    likely = [(row["uncached_tokens"][1], row["reply_tokens"][1]) for row in plan["stages"]]
    expected = sum(uncached + 10 * reply for uncached, reply in likely)
    assert sum(found.values()) == pytest.approx(expected, rel=0.05)
    longest = max(keys, key=lambda key: key.num_words * len(key.questions))
    assert found[longest.document_id] == max(found.values())


def test_a_document_that_cannot_be_read_weighs_nothing(tmp_path: Path) -> None:
    plan = planned(*MEETINGS, f"warehouse={tmp_path}")
    (one, _) = (DocumentKey.of(o.document, o.questions) for o in chosen(read_config(MEETINGS)))
    bad = DocumentKey("bad", "", "", 0, is_bad=True, questions=one.questions)
    found = weights(plan, [one, bad])["reading"]
    assert found["bad"] == 0 < found[one.document_id]


def test_a_history_shares_its_sessions(tmp_path: Path) -> None:
    """Two histories of the same two sessions: half of the gists are made."""
    turn = {"role": "user", "content": "I grow herbs on my balcony. " * 30}
    session = [turn, {"role": "assistant", "content": "Water them in the morning. " * 30}]
    rows = [
        {
            "question_id": name, "question_type": "single-session-user", "question": "Herbs?",
            "answer": "Yes", "question_date": "2023/06/01 (Thu) 10:00",
            "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/21 (Sun) 02:21"],
            "haystack_session_ids": [f"{name}a", f"{name}b"], "answer_session_ids": [],
            "haystack_sessions": [session, [*session, turn]],
        }
        for name in ("one", "two")
    ]  # fmt: skip
    file = tmp_path / "histories.json"
    file.write_text(json.dumps(rows))
    words = ("corpus=longmemeval", f"corpus.path={file}", "methods=gist_only", "memory=uniform")
    alone, both = (
        stages(planned(*words, limit, f"warehouse={tmp_path / 'w'}"))["gist"]["calls"]
        for limit in ("limit=1", "limit=2")
    )
    assert both[:2] == alone[:2]
    assert both[2] == 2 * alone[2]


@pytest.mark.parametrize(
    ("number", "shown"),
    [(0, "0"), (999, "999"), (1000, "1.00k"), (1254, "1.25k"), (12_540, "12.5k"),
     (999_400, "999k"), (999_600, "1.00M"), (4.6e6, "4.60M"), (6.36e9, "6.36G")],
)  # fmt: skip
def test_numbers_have_three_digits(number: float, shown: str) -> None:
    assert short(number) == shown
    assert span(number, number) == shown


def test_a_prompt_finds_what_an_earlier_one_began_with() -> None:
    prefixes = Prefixes()
    begin = "".join(f"{n:04}" for n in range(160))  # 640 characters, none of it twice
    assert prefixes.share(begin + "x" * 360) == 0
    assert prefixes.share(begin + "y" * 360) == 0.64
    assert prefixes.share(begin[::-1]) == 0


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
    assert compose(["engine=vllm", "engine.model=m"])["engine"]["context_tokens"] is None
