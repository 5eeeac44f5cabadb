"""`gistmill bench` runs and prints; how fast this machine is shall not matter here."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.command import gistmill
from tests.small_corpus import document, question, write

pytestmark = pytest.mark.slow

FAST = ("engine.min_workers=1", "engine.max_workers=1", "engine.decode_tokens_per_second=5000")


def figures(*words: str) -> list[dict[str, Any]]:
    done = gistmill("bench", *words, *FAST, "--pairs", "1", "--json")
    found: list[dict[str, Any]] = json.loads(done.stdout)
    missed = any(figure["ok"] is False for figure in found)
    assert done.returncode == (3 if missed else 0), done.stderr
    return found


def test_schedule_measures_two_orders() -> None:
    found = figures("schedule", "limit=4", "engine.sequences=2")
    assert [(figure["part"], figure["bar"]) for figure in found] == [
        ("schedule", "at most 1.15"), ("schedule", "over 1.15"), ("schedule", None),
    ]  # fmt: skip
    assert all(figure["figure"] > 0 for figure in found)


@pytest.fixture(scope="module")
def on_small_corpus(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    corpus: Path = tmp_path_factory.mktemp("bench") / "corpus"
    write(corpus, [document(1), document(2)],
          [question(1, of=1), question(2, of=1), question(3, of=2)])  # fmt: skip
    words = ("engine=simulated", "corpus=tables", f"corpus.path={corpus}", "memory=uniform")
    return figures("limit", "sequential", "cache", *words, "memory.words=40")


def test_the_other_parts_measure_any_corpus_and_engine(
    on_small_corpus: list[dict[str, Any]],
) -> None:
    assert [(figure["part"], figure["bar"]) for figure in on_small_corpus] == [
        ("limit", "at most 1.10"), ("limit", None), ("sequential", None),
        ("cache", "at least 0.90"), ("cache", None),
    ]  # fmt: skip


def test_an_engine_with_room_for_all_comes_to_the_ideal(
    on_small_corpus: list[dict[str, Any]],
) -> None:
    (of_ideal,) = [f["figure"] for f in on_small_corpus if f["what"] == "cached tokens / ideal"]
    assert of_ideal == pytest.approx(1.0)
