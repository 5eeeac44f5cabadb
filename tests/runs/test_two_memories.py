"""A run with two memories: one method cuts pages of its own, the others share theirs. The numbers
that commands print are compared with the Parquet files, joined by hand."""

import json
from pathlib import Path
from statistics import fmean
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.support.command import succeed
from tests.support.docs.pages import blocks
from tests.support.own_methods import methods

OWN = "long_pages(words=150,max_pages=2)"
MEMORY = "paginate(kind=uniform,words=150)"
(YAML,) = blocks("docs/extending.md", "yaml")
TABLES = ("pages", "gists")


def stored(warehouse: Path, name: str, **having: Any) -> list[dict[str, Any]]:
    """The rows of a table as its Parquet files have them: those with these values."""
    files = (warehouse / "tables" / name).rglob("*.parquet")
    rows = [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]
    return [row for row in rows if all(row[key] == value for key, value in having.items())]


@pytest.mark.slow
def test_each_memory_has_its_numbers_and_each_method_those_of_its_own(tmp_path: Path) -> None:
    """The demo, with methods of both memories; in 300 words shared pages are the longer ones."""
    warehouse = tmp_path / "warehouse"
    chosen = f"methods={OWN},gist_only,readagent_p(max_pages=2),bm25(top_k=2),full_text"
    plugin = methods(tmp_path, long_pages=YAML)
    succeed("run", "experiment=demo", "run=two", plugin, chosen, f"warehouse={warehouse}")
    report = json.loads(succeed("report", f"warehouse={warehouse}", "--json"))
    assert [row["memory"] for row in report["memories"]] == ["shared", MEMORY]
    assert report["memories"][0]["pages"] != report["memories"][1]["pages"]
    assert [row["fallback"] is None for row in report["memories"]] == [False, True]
    for row in report["memories"]:
        calls = stored(warehouse, "calls", memory=row["memory"], method=None, is_shared=False)
        tokens = sum(call["prompt_tokens"] + call["reply_tokens"] for call in calls)
        pages, gists = (stored(warehouse, table, memory=row["memory"]) for table in TABLES)
        assert row["pages"] == len(pages)
        assert row["words_per_page"] == pytest.approx(fmean(page["num_words"] for page in pages))
        assert row["words_per_gist"] == pytest.approx(fmean(gist["num_words"] for gist in gists))
        assert (row["calls"], row["tokens"]) == (len(calls), tokens)

    (row,) = [row for row in report["rows"] if row["method"] == OWN]
    of_pages, of_gists = (
        {(row["document_id"], row["page_index"]): row["num_words"]
         for row in stored(warehouse, table, memory=MEMORY)} for table in TABLES
    )  # fmt: skip
    read = []
    for answer in stored(warehouse, "answers", method=OWN):
        document, raw = answer["document_id"], set(answer["page_indexes"])
        places = [place for place in of_pages if place[0] == document]
        read.append(sum((of_pages if p[1] in raw else of_gists)[p] for p in places))
    assert row["means"]["words_read"]["mean"] == pytest.approx(fmean(read))
