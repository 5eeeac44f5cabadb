"""`gistmill show`: pages, each with its gist, and what cannot be shown."""

import json
from pathlib import Path

import pytest

from tests.support.command import refused, succeed
from tests.support.runs.finished_run import FinishedRun

PARAGRAPH = " ".join(["mill1"] * 9 + ["gist1"] * 9 + ["page1"] * 9 + ["river1"] * 9)


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Documents d1 and d2 of three pages of 40 words; the engine's gists are `as it was`."""
    return FinishedRun(tmp_path_factory.mktemp("made")).warehouse


def test_a_gist_follows_its_page(warehouse: Path) -> None:
    title, *parts = succeed("show", "d1", f"warehouse={warehouse}").strip().split("\n\n")
    assert title == "d1: 120 words, 3 pages (memory shared of run night)"
    assert parts[0] == "page 0, 40 words" and parts[1].startswith(PARAGRAPH[:40])
    headings = [part for part in parts if part.startswith("gist of")]
    assert headings == [f"gist of page {n}, 3 words" for n in range(3)]
    assert parts.count("as it was") == 3


def test_pages_are_chosen_by_number_and_range(warehouse: Path) -> None:
    found = json.loads(succeed("show", "d2", f"warehouse={warehouse}", "page=0,2..9", "--json"))
    assert [page["page_index"] for page in found["pages"]] == [0, 2]
    assert (found["num_pages"], found["memory"], found["memories"]) == (3, "shared", ["shared"])
    page, gist = found["pages"][1]["texts"]
    assert (page["heading"], page["num_words"], page["problem"]) == ("page", 40, None)
    assert page["text"].endswith("paragraph three ends here.")
    assert gist == {"heading": "gist", "text": "as it was", "num_words": 3, "problem": None}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["d3"], "d3: no such document in the run; nearest: d1, d2"),
        (["d1", "memory=tree"], "memory=tree: not of d1, which has shared"),
        (["d1", "page=7"], "page=7: d1 has pages 0 to 2"),
        (["d1", "page=2..1"], "page=2..1: d1 has pages 0 to 2"),
        (["d1", "page=first"], "page=first: write page=3 or page=0..4 or page=1,5..6"),
        (["d1", "run=day"], "run=day: not in "),
        (["d1", "method=x"], "'method=x': unknown word; there are warehouse, run, memory, page="),
    ],
)
def test_what_cannot_be_shown(warehouse: Path, words: list[str], says: str) -> None:
    assert refused("show", *words, f"warehouse={warehouse}").startswith(says)
