"""A run with two memories: one method cuts pages of its own, the others share theirs. The numbers
that commands print are compared with the Parquet files, joined by hand."""

import json
from pathlib import Path
from statistics import fmean
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.support.command import succeed
from tests.support.own_methods import methods

OWN = "segmented(words=150,max_pages=2)"
MEMORY = "paginate(kind=uniform,words=150)"
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


def stored(warehouse: Path, name: str, **having: Any) -> Rows:
    """The rows of a table as its Parquet files have them: those with these values."""
    files = (warehouse / "tables" / name).rglob("*.parquet")
    rows = [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]
    return [row for row in rows if all(row[key] == value for key, value in having.items())]


def num_words(rows: Rows) -> dict[tuple[str, int], int]:
    return {(row["document_id"], row["page_index"]): row["num_words"] for row in rows}


@pytest.mark.slow
def test_each_memory_has_its_numbers_and_each_method_those_of_its_own(tmp_path: Path) -> None:
    """The demo, with methods of both memories; in 300 words shared pages are the longer ones."""
    warehouse = tmp_path / "warehouse"
    chosen = "methods=segmented,gist_only,readagent_p(max_pages=2),bm25(top_k=2),full_text"
    own = (methods(tmp_path, segmented=YAML), chosen, f"warehouse={warehouse}")
    succeed("run", "experiment=demo", "run=two", *own)
    report = json.loads(succeed("report", f"warehouse={warehouse}", "--json"))
    assert [row["memory"] for row in report["memories"]] == ["shared", MEMORY]
    assert report["memories"][0]["pages"] != report["memories"][1]["pages"]
    for row in report["memories"]:
        pages, gists = (
            [*num_words(stored(warehouse, table, memory=row["memory"])).values()]
            for table in ("pages", "gists")
        )
        calls = stored(warehouse, "calls", memory=row["memory"], method=None, is_shared=False)
        tokens = sum(call["prompt_tokens"] + call["reply_tokens"] for call in calls)
        assert row["pages"] == len(pages)
        assert row["words_per_page"] == pytest.approx(fmean(pages))
        assert row["words_per_gist"] == pytest.approx(fmean(gists))
        assert row["gist_compression"] == pytest.approx(100 * (1 - sum(gists) / sum(pages)))
        assert (row["calls"], row["tokens"]) == (len(calls), tokens)
    asked = [p["chosen_by"] for p in stored(warehouse, "pages", memory="shared")]
    share = 100 * asked.count("fallback") / sum(by in ("model", "fallback") for by in asked)
    assert [row["fallback"] for row in report["memories"]] == [pytest.approx(share), None]

    (row,) = [row for row in report["rows"] if row["method"] == OWN]
    of_pages, of_gists = (
        num_words(stored(warehouse, table, memory=MEMORY)) for table in ("pages", "gists")
    )
    read = []
    for answer in stored(warehouse, "answers", method=OWN):
        document, raw = answer["document_id"], set(answer["page_indexes"])
        places = [place for place in of_pages if place[0] == document]
        read.append(sum((of_pages if p[1] in raw else of_gists)[p] for p in places))
    assert row["means"]["words_read"]["mean"] == pytest.approx(fmean(read))
