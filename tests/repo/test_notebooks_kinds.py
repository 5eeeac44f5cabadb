"""Both notebooks on runs of every kind: no cell fails, and one with nothing to show says so."""

import base64
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.docs.notebooks import Kernel, Outputs, notebook, shown_as
from tests.support.runs.kinds_of_runs import KINDS, make

pytestmark = [pytest.mark.slow, pytest.mark.sampled]

NO_QUESTION, NO_SCORES = "This run has no questions", "This run has no scores"
NO_RATER, NO_PAGES = "Nobody rated the answers", "cuts "
NO_EVIDENCE, NO_RECALL = "does not say where the answer", "so there is no recall"
OF_QUESTIONS = (
    "question", "references", "answers", "picture", "scores", "measures", "question-calls",
)  # fmt: skip
SAYS = {  # what cells say in words, by notebook and run
    ("one_document", "many_methods"): {"lr": NO_RATER, "others": "has a table of its own"},
    ("one_document", "no_evidence"): {
        "pages": NO_PAGES, "tiling": NO_PAGES, "gists": "No gists", "evidence": NO_EVIDENCE,
        "ratings": NO_RATER, "memory-calls": "no model call",
    },
    ("one_document", "no_questions"): {
        **dict.fromkeys(OF_QUESTIONS, NO_QUESTION), "lookups": "has a look-up",
        "dropped": "looks anything up", "evidence": NO_EVIDENCE, "ratings": NO_RATER,
    },
    ("one_document", "chats"): {"gists": "No gists", "ratings": NO_RATER},
    ("one_document", "walks_and_clues"): {"gists": "No gists", "memory-calls": "no model call"},
    ("one_document", "incomplete"): {"lr": NO_RATER},
    ("one_document", "repeated"): {"evidence": NO_EVIDENCE, "ratings": NO_RATER},
    ("comparing_methods", "many_methods"): {},
    ("comparing_methods", "no_evidence"): {
        "pair": "only full_text", "pair-plot": "only full_text", "evidence": NO_RECALL,
        "evidence-plot": NO_RECALL, "fallback": NO_PAGES,
    },
    ("comparing_methods", "no_questions"): {
        **dict.fromkeys(("measures", "means", "means-plot", "pair", "pair-plot", "compression",
                         "compression-plot", "runs", "runs-plot"), NO_SCORES),
        "evidence": NO_RECALL, "evidence-plot": NO_RECALL,
    },
    ("comparing_methods", "chats"): {},
    ("comparing_methods", "walks_and_clues"): {},
    ("comparing_methods", "incomplete"): {},
    ("comparing_methods", "repeated"): {"evidence": NO_RECALL, "evidence-plot": NO_RECALL},
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All runs in one warehouse, whose corpora differ."""
    made = tmp_path_factory.mktemp("kinds")
    for name in KINDS:
        make(made, name)
    return made


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    made = Kernel()
    try:
        yield made
    finally:
        made.end()


def test_every_kind_is_looked_at() -> None:
    assert set(SAYS) == {(n, run) for n in ("one_document", "comparing_methods") for run in KINDS}


@pytest.mark.parametrize(("name", "run"), SAYS)
def test_a_run_of_this_kind(folder: Path, kernel: Kernel, name: str, run: str) -> None:
    chosen = {"GISTMILL_WAREHOUSE": str(folder / "warehouse"), "GISTMILL_RUN": run}
    outputs = kernel.execute(notebook(name), **chosen)
    says = SAYS[name, run]
    for cell, words in says.items():
        (said,) = shown_as("text/plain", outputs[cell])
        assert words in said, cell
        assert not shown_as("text/html", outputs[cell]) and not shown_as("image/png", outputs[cell])
    assert [o for shown in outputs.values() for o in shown if o.output_type == "stream"] == []
    assert all(shown for shown in outputs.values())
    drawn = {cell for cell, shown in outputs.items() if shown_as("image/png", shown)}
    assert drawn == {cell for cell in outputs if cell.endswith("-plot")} - set(says)
    if "picture" in outputs and "picture" not in says:
        assert 'class="reading-map"' in shown_as("text/html", outputs["picture"])[0]
    if run == "many_methods":
        _check_heights(name, outputs)


def _check_heights(name: str, outputs: Outputs) -> None:
    """25 methods have 20 pixels each, or more."""
    if name == "one_document":
        (html,) = shown_as("text/html", outputs["picture"])
        assert html.count('height="20"') >= 25
        return
    for cell in ("means-plot", "cost-plot", "runs-plot"):
        (picture,) = shown_as("image/png", outputs[cell])
        _, height = struct.unpack(">II", base64.b64decode(picture)[16:24])
        assert height >= 25 * 20, cell
