"""The notebooks run on the demo, and show what the Parquet files hold."""

import json
from collections import defaultdict
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from tests.runs.test_two_memories import Rows, stored
from tests.support.command import ROOT, succeed
from tests.support.docs.notebooks import Outputs, execute, notebook, table

pytestmark = pytest.mark.slow

METHOD = "readagent_p(max_pages=3)"
OTHER = "bm25(top_k=3)"
FOLLOWED = {"GISTMILL_QUESTION": "meeting-02", "GISTMILL_METHOD": METHOD}
COMPARED = {"GISTMILL_METRIC": "rouge1_stem", "GISTMILL_A": METHOD, "GISTMILL_B": OTHER}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the demo's warehouse, and a place for notebooks beside it."""
    folder = tmp_path_factory.mktemp("demo")
    (folder / "notebooks").mkdir()
    succeed("run", "experiment=demo", f"warehouse={folder / 'warehouse'}", "run=demo")
    return folder


@pytest.fixture(scope="module")
def one_document(folder: Path) -> Outputs:
    """Run where it stands: the warehouse is one folder up."""
    return execute(notebook("one_document"), folder / "notebooks", **FOLLOWED)


@pytest.fixture(scope="module")
def comparing(folder: Path) -> Outputs:
    """Run from the root, where the warehouse is."""
    return execute(notebook("comparing_methods"), folder, **COMPARED)


def by_method(rows: Rows) -> dict[str, dict[str, float]]:
    """The scores of each method by question."""
    values: dict[str, dict[str, float]] = defaultdict(dict)
    for row in rows:
        values[row["method"]][row["question_id"]] = row["value"]
    return values


def demo_question(question_id: str) -> dict[str, Any]:
    lines = (ROOT / "conf" / "demo" / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    (found,) = [q for q in map(json.loads, lines) if q["question_id"] == question_id]
    return dict(found)


def test_the_pages_are_those_of_the_files(folder: Path, one_document: Outputs) -> None:
    columns = ("page_index", "start_char", "end_char", "num_words")
    pages = stored(folder / "warehouse", "pages", document_id="orchard_coop_meeting")
    pages.sort(key=lambda page: page["page_index"])
    shown = [[int(row[name]) for name in columns] for row in table(one_document["pages"])]
    assert shown == [[page[name] for name in columns] for page in pages]
    assert len(shown) > 3
    (tiling,) = table(one_document["tiling"])
    assert tiling["joined_are_the_text"] == "True"


def test_the_evidence_seen_is_what_the_recall_says(folder: Path, one_document: Outputs) -> None:
    gold = [(s["start_char"], s["end_char"]) for s in demo_question("meeting-02")["evidence"]]
    (answer,) = stored(folder / "warehouse", "answers", question_id="meeting-02", method=METHOD)
    read = {i for s in answer["context_spans"] for i in range(s["start_char"], s["end_char"])}
    seen = [len(read & set(range(*span))) for span in gold]
    shown = table(one_document["evidence"])
    assert [int(row["gold_chars"]) for row in shown] == [end - start for start, end in gold]
    assert [int(row["seen_chars"]) for row in shown] == seen
    (recall,) = [r for r in table(one_document["scores"]) if r["metric"] == "evidence_recall"]
    gold_chars = sum(end - start for start, end in gold)
    assert float(recall["value"]) == pytest.approx(100 * sum(seen) / gold_chars)


def test_the_means_are_those_of_the_scores(folder: Path, comparing: Outputs) -> None:
    values = by_method(stored(folder / "warehouse", "scores", metric="rouge1_stem"))
    shown = {row["method"]: row for row in table(comparing["means"])}
    assert set(shown) == set(values)
    assert len(shown) == 10
    for method, own in values.items():
        assert float(shown[method]["mean"]) == pytest.approx(mean(own.values()), rel=1e-5)
        assert int(shown[method]["n"]) == len(own) == 15
