"""The notebooks run, also on runs that lack something, and show what the Parquet files hold."""

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import mean

import pytest
import yaml

from tests.runs.test_two_memories import stored
from tests.support.command import ROOT, succeed
from tests.support.docs.notebooks import Kernel, Outputs, execute, notebook, shown_as, table
from tests.support.texts.small_corpus import UNIFORM, document, question, write

pytestmark = pytest.mark.slow

METHOD = "readagent_p(max_pages=3)"
PLAIN = ("corpus=tables", "corpus.path=FOLDER/plain", "rater=none")
KINDS = {  # the words of a run
    "no_evidence": (*PLAIN, "methods=full_text"),
    "no_questions": ("corpus=text", "corpus.path=FOLDER/texts", "rater=none", "methods=gist_only",
                     *UNIFORM),
    "incomplete": ("corpus=demo", "limit=2", "memory=uniform", "methods=gist_only,bm25(top_k=1)"),
    "repeated": (*PLAIN, "methods=gist_only,bm25(top_k=1)", *UNIFORM, "repeats=2",
                 "engine=scripted", "engine.script=FOLDER/script.yaml", "engine.temperature=1.0"),
}  # fmt: skip
# The cells of each notebook that draw nothing, as there is nothing.
BARE = {
    "no_evidence": {"pair-plot", "evidence-plot"},
    "no_questions": {"means-plot", "pair-plot", "compression-plot", "evidence-plot", "runs-plot"},
    "repeated": {"evidence-plot"},
}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the demo's warehouse, and a place for notebooks beside it."""
    folder = tmp_path_factory.mktemp("demo")
    (folder / "notebooks").mkdir()
    succeed("run", "experiment=demo", f"warehouse={folder / 'warehouse'}", "run=demo")
    return folder


@pytest.fixture(scope="module")
def one_document(demo: Path) -> Outputs:
    """Run where it stands: the warehouse is one folder up."""
    followed = {"GISTMILL_QUESTION": "meeting-02", "GISTMILL_METHOD": METHOD}
    return execute(notebook("one_document"), demo / "notebooks", **followed)


def test_the_pages_are_those_of_the_files(demo: Path, one_document: Outputs) -> None:
    columns = ("page_index", "start_char", "end_char", "num_words")
    pages = stored(demo / "warehouse", "pages", document_id="orchard_coop_meeting")
    pages.sort(key=lambda page: page["page_index"])
    shown = [[int(row[name]) for name in columns] for row in table(one_document["pages"])]
    assert shown == [[page[name] for name in columns] for page in pages]
    assert len(shown) > 3
    (tiling,) = table(one_document["tiling"])
    assert tiling["joined_are_the_text"] == "True"


def test_the_evidence_seen_is_what_the_recall_says(demo: Path, one_document: Outputs) -> None:
    lines = (ROOT / "conf" / "demo" / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    (asked,) = [q for q in map(json.loads, lines) if q["question_id"] == "meeting-02"]
    gold = [(span["start_char"], span["end_char"]) for span in asked["evidence"]]
    (answer,) = stored(demo / "warehouse", "answers", question_id="meeting-02", method=METHOD)
    read = {i for s in answer["context_spans"] for i in range(s["start_char"], s["end_char"])}
    seen = [len(read & set(range(*span))) for span in gold]
    shown = table(one_document["evidence"])
    assert [int(row["gold_chars"]) for row in shown] == [end - start for start, end in gold]
    assert [int(row["seen_chars"]) for row in shown] == seen
    (recall,) = [r for r in table(one_document["scores"]) if r["metric"] == "evidence_recall"]
    gold_chars = sum(end - start for start, end in gold)
    assert float(recall["value"]) == pytest.approx(100 * sum(seen) / gold_chars)


def test_the_means_are_those_of_the_scores(demo: Path) -> None:
    """Run from the root, where the warehouse is."""
    chosen = {"GISTMILL_METRIC": "rouge1_stem", "GISTMILL_A": METHOD, "GISTMILL_B": "bm25(top_k=3)"}
    outputs = execute(notebook("comparing_methods"), demo, **chosen)
    values: dict[str, list[float]] = defaultdict(list)
    for row in stored(demo / "warehouse", "scores", metric="rouge1_stem"):
        values[row["method"]].append(row["value"])
    shown = {row["method"]: row for row in table(outputs["means"])}
    assert set(shown) == set(values)
    assert len(shown) == 10
    for method, scores in values.items():
        assert float(shown[method]["mean"]) == pytest.approx(mean(scores), rel=1e-5)
        assert int(shown[method]["n"]) == len(scores) == 15


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of all kinds in one warehouse, whose corpora differ."""
    folder = tmp_path_factory.mktemp("kinds")
    answers = folder / "warehouse" / "tables" / "answers"
    documents = [document(1), document(2)]
    asked = [{**question(number, of=1), "evidence": []} for number in range(3)]
    write(folder / "plain", documents, asked)
    (folder / "texts").mkdir()
    for row in documents:
        (folder / "texts" / f"{row['document_id']}.txt").write_text(row["text"])
    (folder / "script.yaml").write_text(yaml.safe_dump({"replies": [{"reply": "mill1 page1"}]}))
    for name, words in KINDS.items():
        named = [word.replace("FOLDER", str(folder)) for word in words]
        of_other_runs = {*answers.rglob("*.parquet")}
        succeed("run", *named, f"run={name}", f"warehouse={folder / 'warehouse'}")
        if name == "incomplete":
            min({*answers.rglob("*.parquet")} - of_other_runs).unlink()
    return folder


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    kernel = Kernel()
    yield kernel
    kernel.end()


@pytest.mark.sampled
@pytest.mark.parametrize("run", KINDS)
@pytest.mark.parametrize("name", ["one_document", "comparing_methods"])
def test_a_run_of_this_kind(kinds: Path, kernel: Kernel, name: str, run: str) -> None:
    chosen = {"GISTMILL_WAREHOUSE": str(kinds / "warehouse"), "GISTMILL_RUN": run}
    outputs = kernel.execute(notebook(name), **chosen)
    assert [o for shown in outputs.values() for o in shown if o.output_type == "stream"] == []
    assert all(shown for shown in outputs.values())
    drawn = {cell for cell, shown in outputs.items() if shown_as("image/png", shown)}
    assert drawn == {cell for cell in outputs if cell.endswith("-plot")} - BARE.get(run, set())
