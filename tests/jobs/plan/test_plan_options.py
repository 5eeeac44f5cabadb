"""What `gistmill plan` takes, refuses, and rests its hours and money on."""

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.core.compose import compose
from pipeline.store.runs.run_folder import RunFolder
from tests.support.command import refused, succeed
from tests.support.runs.plans import planned, six_documents, stages

Words = tuple[str, ...]
MODEL = ("engine=vllm", "engine.model=some/model-8B")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Words:
    return six_documents(tmp_path_factory.mktemp("corpus"))


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
    (found,) = planned(*words)["phases"]
    return dict(found)


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
    found = cached["prompt_tokens"] - cached["uncached_tokens"]
    assert found > 0
    assert cached["money"] == pytest.approx(
        (3 * cached["uncached_tokens"] + 0.3 * found + 15 * cached["reply_tokens"]) / 1e6
    )
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
