"""`gistmill show`: pages, each with its gist, and what cannot be shown; and what `gistmill trace`
prints of memories."""

import json
from pathlib import Path

import pytest

from tests.support.command import refused, sql, succeed
from tests.support.runs.finished_run import FinishedRun
from tests.support.texts.small_corpus import UNIFORM, document, question, write

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
    shown = json.loads(succeed("show", "d2", f"warehouse={warehouse}", "page=0,2..9", "--json"))
    assert [page["page_index"] for page in shown["pages"]] == [0, 2]
    assert (shown["num_pages"], shown["memory"], shown["memories"]) == (3, "shared", ["shared"])
    page, gist = shown["pages"][1]["texts"]
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


@pytest.mark.slow
def test_trace_prints_only_the_parts_of_a_memory_unless_all_is_asked_for(tmp_path: Path) -> None:
    write(tmp_path / "corpus", [document(1)], [question(1, of=1)])
    warehouse = tmp_path / "warehouse"
    succeed("run", "corpus=tables", f"corpus.path={tmp_path / 'corpus'}", *UNIFORM, "rater=none",
            "engine=extractive", "methods=gist_only,full_text,bm25(top_k=1)",
            f"warehouse={warehouse}")  # fmt: skip
    gists = [row["gist"] for row in sql(warehouse, "select gist from gists order by page_index")]
    shown = succeed("trace", "q1", f"warehouse={warehouse}")
    of_memory = shown.partition("\n== ")[0]
    assert f"GIST MEMORY ({len(gists)} pages)\n" in of_memory and gists[0] not in of_memory
    command = f"gistmill show d1 warehouse={warehouse}"
    assert f"\n{command} prints a memory, --full all of them here\n" in shown
    assert "page 0" in succeed(*command.split()[1:])
    (run,) = {row["run"] for row in sql(warehouse, "select run from planned")}
    of_run = succeed("trace", "q1", f"run={run}", f"warehouse={warehouse}")
    assert f"gistmill show d1 run={run} warehouse={warehouse} prints" in of_run
    whole = succeed("trace", "q1", f"warehouse={warehouse}", "--full")
    assert all(gist in whole for gist in gists) and "gistmill show" not in whole
