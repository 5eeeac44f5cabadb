"""`gistmill report --corpus` on the run that is worked by hand."""

import json
import statistics
from collections import Counter

import pytest

from tests.support.command import refused, sql, succeed
from tests.support.runs.hand_run import TEXTS, HandRun

pytestmark = pytest.mark.slow

NUMBERS = ("mean", "min", "q1", "median", "q3", "max")


def summary(values: list[float]) -> list[float]:
    """By the standard library."""
    quarters = statistics.quantiles(values, n=4, method="inclusive")
    return [statistics.fmean(values), min(values), *quarters, max(values)]


def test_documents_pages_gists_and_compression(hand: HandRun) -> None:
    """Documents have 60, 32 and 150 words, counted in hand_run.py; the blank one is left out."""
    pages = sql(hand.warehouse, "select document_id, num_words from pages where text is not null")
    gists = sql(hand.warehouse, "select document_id, gist from gists where gist is not null")
    memory: Counter[str] = Counter()
    for row in gists:
        memory[row["document_id"]] += len(row["gist"].split())
    words = {name: len(text.split()) for name, text in TEXTS.items()}
    rates = [100 * (1 - memory[name] / words[name]) for name in memory]
    expected = {
        "words per document": [60, 32, 150],
        "pages per document": [*Counter(row["document_id"] for row in pages).values()],
        "words per page": [row["num_words"] for row in pages],
        "words per gist memory": list(memory.values()),
        "words per gist": [len(row["gist"].split()) for row in gists],
        "compression rate of the gists, %": rates,
    }
    shown = json.loads(succeed("report", f"warehouse={hand.warehouse}", "--corpus", "--json"))
    by_measure = {row["measure"]: row for row in shown}
    for measure, values in expected.items():
        row = by_measure[measure]
        assert row["n"] == len(values), measure
        assert [row[name] for name in NUMBERS] == pytest.approx(summary(values)), measure


def test_words_that_do_nothing_are_refused(hand: HandRun) -> None:
    warehouse = f"warehouse={hand.warehouse}"
    for word in ("by=question_type", "where=true", "rater=x"):
        told = refused("report", warehouse, "--corpus", word)
        assert told.startswith(f"{word.partition('=')[0]}: ")
    assert refused("report", warehouse, "plugins=x").startswith("plugins: ")
