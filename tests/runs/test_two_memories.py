"""A run with two memories: one method cuts pages of its own, the others share theirs. The numbers
that commands print are compared with the Parquet files, joined by hand."""

import json
import re
from pathlib import Path
from statistics import fmean
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.support.command import succeed
from tests.support.own_methods import methods

pytestmark = pytest.mark.slow

OWN = "segmented(words=150,max_pages=2)"
MEMORY = "paginate(kind=uniform,words=150)"
BM25 = "bm25(top_k=2)"
YAML = """\
# ReadAgent over pages of `words` words, cut and shortened for itself.
arguments: {words: 150, max_pages: 2}
stages:
  segments: {stage: paginate, kind: uniform, words: $words}
  gist: {}
  look_up: {kind: parallel, max_pages: $max_pages}
  answer: {kind: memory}
"""
Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its demo, with methods of both memories; in 300 words shared pages are the longer ones."""
    folder = tmp_path_factory.mktemp("two")
    succeed(
        "run", "experiment=demo", methods(folder, segmented=YAML), "run=two",
        "methods=segmented,gist_only,readagent_p(max_pages=2),bm25(top_k=2),full_text",
        f"warehouse={folder / 'warehouse'}",
    )  # fmt: skip
    return folder / "warehouse"


def stored(warehouse: Path, name: str, **having: Any) -> Rows:
    """The rows of a table as its Parquet files have them: those with these values."""
    files = (warehouse / "tables" / name).rglob("*.parquet")
    rows = [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]
    return [row for row in rows if all(row[key] == value for key, value in having.items())]


def tokens(calls: Rows) -> tuple[int, int]:
    return len(calls), sum(call["prompt_tokens"] + call["reply_tokens"] for call in calls)


def test_report_has_a_line_per_memory(warehouse: Path) -> None:
    report = json.loads(succeed("report", f"warehouse={warehouse}", "--json"))
    assert [row["memory"] for row in report["memories"]] == ["shared", MEMORY]
    assert report["memories"][0]["pages"] != report["memories"][1]["pages"]
    for row in report["memories"]:
        pages = stored(warehouse, "pages", memory=row["memory"])
        gists = stored(warehouse, "gists", memory=row["memory"])
        page_words = sum(page["num_words"] for page in pages)
        gist_words = sum(gist["num_words"] for gist in gists)
        calls = stored(warehouse, "calls", memory=row["memory"], method=None, is_shared=False)
        assert row["pages"] == len(pages)
        assert row["words_per_page"] == pytest.approx(page_words / len(pages))
        assert row["words_per_gist"] == pytest.approx(gist_words / len(gists))
        assert row["gist_compression"] == pytest.approx(100 * (1 - gist_words / page_words))
        assert (row["calls"], row["tokens"]) == tokens(calls)
    asked = [p["chosen_by"] for p in stored(warehouse, "pages", memory="shared")]
    share = 100 * asked.count("fallback") / sum(by in ("model", "fallback") for by in asked)
    assert [row["fallback"] for row in report["memories"]] == [pytest.approx(share), None]


def test_a_method_shows_its_own_calls_and_what_its_own_memory_took(warehouse: Path) -> None:
    report = json.loads(succeed("report", f"warehouse={warehouse}", "--json"))
    rows = {row["method"]: row["counts"] for row in report["rows"]}
    for method, counts in rows.items():
        calls = stored(warehouse, "calls", method=method, is_shared=False)
        own = [call for call in calls if call["stage"] != "rate"]
        assert (counts["calls"], counts["tokens"]) == tokens(own), method
    took = tokens(stored(warehouse, "calls", memory=MEMORY, method=None, is_shared=False))
    assert took[0] > 0
    assert (rows[OWN]["memory_calls"], rows[OWN]["memory_tokens"]) == took
    for method, stages in (("gist_only", ("paginate", "gist")), (BM25, ("paginate",))):
        calls = stored(warehouse, "calls", memory="shared", method=None, is_shared=False)
        of_shared = tokens([call for call in calls if call["stage"] in stages])
        assert (rows[method]["memory_calls"], rows[method]["memory_tokens"]) == of_shared
    assert rows["full_text"]["memory_calls"] == 0
    assert rows[OWN]["fallback"] is None
    assert "fallback" in rows[BM25] and "fallback" not in rows["full_text"]
    printed = succeed("report", f"warehouse={warehouse}")
    assert re.search(rf"^\| {re.escape(OWN)} .*\| +{took[0]} +\| +{took[1]} +\|", printed, re.M)


def test_means_of_a_method_are_those_of_its_own_pages(warehouse: Path) -> None:
    report = json.loads(succeed("report", f"warehouse={warehouse}", "--json"))
    (row,) = [row for row in report["rows"] if row["method"] == OWN]
    pages, gists = (
        {(row["document_id"], row["page_index"]): row["num_words"] for row in rows}
        for rows in (stored(warehouse, name, memory=MEMORY) for name in ("pages", "gists"))
    )
    read = []
    for answer in stored(warehouse, "answers", method=OWN):
        document, raw = answer["document_id"], set(answer["page_indexes"])
        read.append(sum(pages[p] if p[1] in raw else gists[p] for p in pages if p[0] == document))
    assert row["means"]["words_read"]["mean"] == pytest.approx(fmean(read))
