"""Both notebooks on runs that lack something: no cell fails, and what is not there is not drawn."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.support.command import succeed
from tests.support.docs.notebooks import Kernel, notebook, shown_as
from tests.support.texts.small_corpus import UNIFORM, document, question, write

pytestmark = [pytest.mark.slow, pytest.mark.sampled]

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
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All runs in one warehouse, whose corpora differ."""
    made = tmp_path_factory.mktemp("kinds")
    answers = made / "warehouse" / "tables" / "answers"
    documents = [document(1), document(2)]
    asked = [{**question(number, of=1), "evidence": []} for number in range(3)]
    write(made / "plain", documents, asked)
    (made / "texts").mkdir()
    for one in documents:
        (made / "texts" / f"{one['document_id']}.txt").write_text(one["text"])
    (made / "script.yaml").write_text(yaml.safe_dump({"replies": [{"reply": "mill1 page1"}]}))
    for name, words in KINDS.items():
        named = [word.replace("FOLDER", str(made)) for word in words]
        of_other_runs = {*answers.rglob("*.parquet")}
        succeed("run", *named, f"run={name}", f"warehouse={made / 'warehouse'}")
        if name == "incomplete":
            min({*answers.rglob("*.parquet")} - of_other_runs).unlink()
    return made


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    made = Kernel()
    try:
        yield made
    finally:
        made.end()


@pytest.mark.parametrize("run", KINDS)
@pytest.mark.parametrize("name", ["one_document", "comparing_methods"])
def test_a_run_of_this_kind(folder: Path, kernel: Kernel, name: str, run: str) -> None:
    chosen = {"GISTMILL_WAREHOUSE": str(folder / "warehouse"), "GISTMILL_RUN": run}
    outputs = kernel.execute(notebook(name), **chosen)
    assert [o for shown in outputs.values() for o in shown if o.output_type == "stream"] == []
    assert all(shown for shown in outputs.values())
    drawn = {cell for cell, shown in outputs.items() if shown_as("image/png", shown)}
    assert drawn == {cell for cell in outputs if cell.endswith("-plot")} - BARE.get(run, set())
