"""A run with two memories: a method that cuts pages of its own beside those that share theirs.

What commands, docs and notebooks say of it is compared with the Parquet files, read here by
themselves and joined by hand.
"""

import json
import re
import shlex
from collections import Counter, defaultdict
from pathlib import Path
from statistics import fmean
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.support.command import sql, succeed
from tests.support.docs.pages import blocks

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
    method = folder / "own_pages" / "conf" / "method" / "segmented.yaml"
    method.parent.mkdir(parents=True)
    method.write_text(YAML)
    methods = "segmented,gist_only,readagent_p(max_pages=2),bm25(top_k=2),full_text"
    words = (f"methods={methods}", f"plugins={folder / 'own_pages'}", "run=two")
    succeed("run", "experiment=demo", *words, f"warehouse={folder / 'warehouse'}")
    return folder / "warehouse"


def stored(warehouse: Path, name: str, **having: Any) -> Rows:
    """The rows of a table as its Parquet files have them: those with these values."""
    files = (warehouse / "tables" / name).rglob("*.parquet")
    rows = [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]
    return [row for row in rows if all(row[key] == value for key, value in having.items())]


def gists_of(warehouse: Path, memory: str) -> dict[tuple[str, int], dict[str, Any]]:
    rows = stored(warehouse, "gists", memory=memory)
    return {(row["document_id"], row["page_index"]): row for row in rows}


def tokens(calls: Rows) -> tuple[int, int]:
    return len(calls), sum(call["prompt_tokens"] + call["reply_tokens"] for call in calls)


def test_there_are_two_memories_of_other_pages(warehouse: Path) -> None:
    pages = Counter(row["memory"] for row in stored(warehouse, "pages"))
    assert set(pages) == {"shared", MEMORY}
    assert len(set(pages.values())) == 2
    assert Counter(row["memory"] for row in stored(warehouse, "gists")) == pages
    rests = defaultdict(set)
    for row in stored(warehouse, "answers"):
        rests[row["method"]].add(row["memory"])
    assert rests[OWN] == {MEMORY}
    assert rests[BM25] == {"shared"}
    assert rests["full_text"] == {None}


def test_report_has_a_line_per_memory(warehouse: Path) -> None:
    report = json.loads(succeed("report", f"warehouse={warehouse}", "--json"))
    assert [row["memory"] for row in report["memories"]] == ["shared", MEMORY]
    for row in report["memories"]:
        pages = stored(warehouse, "pages", memory=row["memory"])
        gists = gists_of(warehouse, row["memory"]).values()
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
    lines = succeed("report", f"warehouse={warehouse}").splitlines()
    (heading,) = [line for line in lines if "answered" in line and line.startswith("|")]
    assert "memory calls" in heading and "memory tokens" in heading
    (line,) = [line for line in lines if line.startswith(f"| {OWN}") and str(took[1]) in line]
    place = heading.split("|").index(" memory calls ")
    assert [cell.strip() for cell in line.split("|")[place : place + 2]] == [str(n) for n in took]


def test_means_of_a_method_are_those_of_its_own_pages(warehouse: Path) -> None:
    report = json.loads(succeed("report", f"warehouse={warehouse}", "--json"))
    (row,) = [row for row in report["rows"] if row["method"] == OWN]
    words = {(p["document_id"], p["page_index"]): p["num_words"]
             for p in stored(warehouse, "pages", memory=MEMORY)}  # fmt: skip
    gists = gists_of(warehouse, MEMORY)
    read = []
    for answer in stored(warehouse, "answers", method=OWN):
        document, raw = answer["document_id"], set(answer["page_indexes"])
        pages = [page for page in words if page[0] == document]
        read.append(sum(words[p] if p[1] in raw else gists[p]["num_words"] for p in pages))
    assert row["means"]["words_read"]["mean"] == pytest.approx(fmean(read))


def page_lines(text: str) -> list[str]:
    """The pages read of a trace, in its order: `<Page i> text`, as printed in full."""
    return re.findall(r"^  (<Page \d+> (?!\().*)$", text, re.MULTILINE)


@pytest.mark.parametrize(("method", "memory"), [(OWN, MEMORY), ("readagent_p", "shared")])
def test_trace_shows_the_pages_that_were_read(warehouse: Path, method: str, memory: str) -> None:
    (answer,) = [
        row
        for row in stored(warehouse, "answers", question_id="meeting-02")
        if row["method"].startswith(method)
    ]
    assert answer["page_indexes"]
    pages = {(p["document_id"], p["page_index"]): p["text"]
             for p in stored(warehouse, "pages", memory=memory)}  # fmt: skip
    words = ("trace", "meeting-02", f"warehouse={warehouse}", f"method={method.split('(')[0]}")
    text = succeed(*words, "--full")
    expected = [f"<Page {i}> {pages[answer['document_id'], i]}" for i in answer["page_indexes"]]
    assert page_lines(text) == [page.splitlines()[0].rstrip() for page in expected]
    assert (f"MEMORY {memory}" in text) == (memory != "shared")
    found = json.loads(succeed(*words, "--json"))
    assert set(found["memories"]) == {"shared", memory}
    (traced,) = found["methods"]
    assert [page["page_index"] for page in traced["answer"]["pages_read"]] == (
        answer["page_indexes"]
    )


def queries() -> dict[str, str]:
    """The queries of the docs, by a text that only one of them has."""
    shown = [*blocks("docs/sql.md", "sh"), *blocks("docs/methods/memwalker.md", "sh")]
    queried = [block for block in shown if block.startswith("gistmill sql ")]
    texts = {
        "compression": "as compression", "gists": "left(p.text", "tokens": "as prompt_tokens",
        "read": "select a.method, memory", "walks": "as stray_ratio",
    }  # fmt: skip
    return {name: shlex.split(block)[2] for name, text in texts.items() for block in queried
            if text in block}  # fmt: skip


def test_compression_and_gists_of_the_readme(warehouse: Path) -> None:
    found = sql(warehouse, queries()["compression"])
    expected: dict[tuple[str, str], float] = {}
    for memory in ("shared", MEMORY):
        totals: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        for page in stored(warehouse, "pages", memory=memory):
            totals[page["document_id"]][0] += page["num_words"]
        for (document, _), gist in gists_of(warehouse, memory).items():
            totals[document][1] += gist["num_words"]
        expected |= {(memory, d): round(100 * (1 - g / p), 1) for d, (p, g) in totals.items()}
    assert {(r["memory"], r["document_id"]): r["compression"] for r in found} == expected
    found = sql(warehouse, queries()["gists"])
    pages = stored(warehouse, "pages", document_id="tide_mill_handbook")
    gists = {m: gists_of(warehouse, m) for m in ("shared", MEMORY)}
    assert len(found) == len(pages)
    for page in pages:
        place = (page["memory"], page["page_index"])
        (row,) = [row for row in found if (row["memory"], row["page_index"]) == place]
        assert row["page"] == page["text"][:60]
        gist = gists[page["memory"]][page["document_id"], page["page_index"]]
        assert row["gist"] == gist["gist"][:60]
