"""`gistmill report --corpus` on the run that is worked by hand."""

import json
import statistics

import pytest

from tests.support.command import refused, sql, succeed
from tests.support.runs.hand_run import TEXTS, HandRun

pytestmark = pytest.mark.slow

NUMBERS = ("mean", "min", "q1", "median", "q3", "max")


def summary(values: list[float]) -> list[float]:
    """By the standard library."""
    quarters = statistics.quantiles(values, n=4, method="inclusive")
    return [statistics.fmean(values), min(values), *quarters, max(values)]


@pytest.fixture(scope="module")
def found(hand: HandRun) -> dict[str, dict[str, float]]:
    shown = json.loads(succeed("report", f"warehouse={hand.warehouse}", "--corpus", "--json"))
    return {row["measure"]: row for row in shown}


def test_words_of_the_documents_that_can_be_read(found: dict[str, dict[str, float]]) -> None:
    """60, 32 and 150, counted in hand_run.py; the blank one is left out."""
    words = found["words per document"]
    assert [len(text.split()) for text in TEXTS.values()] == [60, 32, 150]
    assert words["n"] == 3
    assert [words[name] for name in NUMBERS] == pytest.approx(summary([60, 32, 150]))


def test_pages_gists_and_compression(hand: HandRun, found: dict[str, dict[str, float]]) -> None:
    pages = sql(hand.warehouse, "select document_id, num_words from pages where text is not null")
    gists = sql(hand.warehouse, "select document_id, gist from gists where gist is not null")
    memory = {name: 0 for name in {row["document_id"] for row in gists}}
    for row in gists:
        memory[row["document_id"]] += len(row["gist"].split())
    of = {name: sum(row["document_id"] == name for row in pages) for name in TEXTS}
    words = {name: len(text.split()) for name, text in TEXTS.items()}
    rates = [100 * (1 - memory[name] / words[name]) for name in memory]
    expected = {
        "pages per document": list(of.values()),
        "words per page": [row["num_words"] for row in pages],
        "words per gist memory": list(memory.values()),
        "words per gist": [len(row["gist"].split()) for row in gists],
        "compression rate of the gists, %": rates,
    }
    for measure, values in expected.items():
        row = found[measure]
        assert row["n"] == len(values), measure
        assert [row[name] for name in NUMBERS] == pytest.approx(summary(values)), measure


def test_words_that_do_nothing_are_refused(hand: HandRun) -> None:
    warehouse = f"warehouse={hand.warehouse}"
    for word in ("by=question_type", "where=true", "rater=x"):
        told = refused("report", warehouse, "--corpus", word)
        assert told.startswith(f"{word.partition('=')[0]}: ")
    assert refused("report", warehouse, "plugins=x").startswith("plugins: ")
