"""`gistmill bench` runs and prints; how fast this machine is shall not matter here."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import gistmill, refused
from tests.support.texts.small_corpus import document, question, write

pytestmark = pytest.mark.slow

FAST = ("engine.min_workers=1", "engine.max_workers=1", "engine.decode_tokens_per_second=5000")


def figures(*words: str) -> list[dict[str, Any]]:
    done = gistmill("bench", *words, "--pairs", "1", "--json")
    found: list[dict[str, Any]] = json.loads(done.stdout)
    missed = any(figure["ok"] is False for figure in found)
    assert done.returncode == (3 if missed else 0), done.stderr
    return found


def test_schedule_measures_two_orders() -> None:
    found = figures("schedule", "limit=4", "engine.sequences=2", *FAST)
    both = ["at most 1.10", "over 1.10"]
    assert [figure["bar"] for figure in found] == [*both, None, *both]
    assert all(figure["part"] == "schedule" and figure["figure"] > 0 for figure in found)


def test_units_are_counted_in_one_process() -> None:
    whole, kernel = figures("units", "corpus.num_documents=2")
    assert whole["what"] == "CPU milliseconds of a unit"
    assert whole["figure"] > kernel["figure"] >= 0
    line = refused("bench", "units", "cluster=local")
    assert line.startswith("cluster=local: units takes inline")


def test_the_other_parts_measure_any_corpus_and_engine(tmp_path: Path) -> None:
    write(tmp_path, [document(1), document(2)],
          [question(1, of=1), question(2, of=1), question(3, of=2)])  # fmt: skip
    words = ("engine=simulated", "corpus=tables", f"corpus.path={tmp_path}", "memory=uniform")
    found = figures("limit", "cache", *words, "memory.words=40", *FAST)
    assert [(figure["part"], figure["bar"]) for figure in found] == [
        ("limit", "at most 1.10"), *[("limit", None)] * 5,
        ("cache", "at least 0.90"), ("cache", None), ("cache", "at most 2.50"),
    ]  # fmt: skip
    by_name = {figure["what"]: figure["figure"] for figure in found}
    assert by_name["cached tokens / ideal"] == pytest.approx(1.0)  # there is room for all
    assert 0 < by_name["fixed CPU seconds of an execution"] < 60
    assert 0 < by_name["fixed seconds of an execution"] < 120
    assert 0 < by_name["CPU seconds outside the engine, per 1,000 requests"] < 1000


def test_the_start_of_a_run_is_measured() -> None:
    found = {of["what"]: of["figure"] for of in figures("driver", "corpus.num_documents=300")}
    assert found["seconds to the first reply"] > 0
    assert 100 < found["MB of the driver"] < 1000


def test_a_simulated_engine_is_no_faster_than_it_says() -> None:
    """It can only be slower, on a busy machine; a tenth of it would be another mistake."""
    prefill, decode = figures(
        "rates", "engine=simulated", "engine.sequences=4", "engine.reply_tokens=100",
        "engine.decode_tokens_per_second=100", "engine.prefill_tokens_per_second=8000",
    )  # fmt: skip
    assert prefill["what"].endswith("(PREFILL)") and 800 < prefill["figure"] <= 8000
    assert decode["what"].endswith("(DECODE)") and 40 < decode["figure"] <= 4 * 100
