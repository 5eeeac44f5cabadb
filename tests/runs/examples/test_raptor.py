"""docs/examples/raptor: which nodes are made of what, and which are read for a question; and the
test of it that docs/extending.md shows."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.docs.pages import blocks
from tests.support.fork_server import forked
from tests.support.runs.example_run import EXAMPLES, Rows, example_rows, sent_texts

# Chunks 0 and 2 share five words, 1 and 3 three; 12 words each.
DOCUMENT = {
    "document_id": "town",
    "text": "The miller sold white flour to every baker in the old town.\n\n"
    "A heron stood in the cold lake and watched the silver fish.\n\n"
    "The baker made bread of the flour that the miller had sold.\n\n"
    "At night the heron left the lake and the fish came back.",
}
QUESTIONS = [{"question_id": "q", "question": "What did the heron do at the lake?",
              "references": ["It hunted."]}]  # fmt: skip
SUMMARIES: list[dict[str, Any]] = [  # of the root, and of the two clusters below it
    {"prompt": "raptor_summary", "match": "TRADE.*LAKE", "reply": "TOWN of trade."},
    {"prompt": "raptor_summary", "match": "white flour.*made bread", "reply": "TRADE in flour."},
    {"prompt": "raptor_summary", "match": "silver.*At night", "reply": "LAKE heron hunts fish."},
]  # fmt: skip
ANSWER = {"prompt": "answer", "reply": "It hunted fish."}


def raptor(folder: Path, node_words: int, *replies: dict[str, Any]) -> Rows:
    method = f"raptor(chunk_words=12,cluster_size=2,node_words={node_words})"
    return example_rows(folder, method, replies, document=DOCUMENT, questions=QUESTIONS)


@pytest.mark.slow
def test_clusters_are_summarized_level_by_level(tmp_path: Path) -> None:
    rows = raptor(tmp_path, 30, *SUMMARIES, ANSWER)
    made = [(n["level"], n["children"], n["text"]) for n in rows["raptor_nodes"][4:]]
    assert [n["level"] for n in rows["raptor_nodes"][:4]] == [0] * 4
    assert made == [
        (1, [0, 2], "TRADE in flour."),
        (1, [1, 3], "LAKE heron hunts fish."),
        (2, [4, 5], "TOWN of trade."),
    ]
    # 4 words of the summary and twice 12 of the chunks with a heron; no other has room in 30.
    (answer,) = rows["answers"]
    assert answer["answer"] == "It hunted fish." and answer["problem"] is None
    assert answer["page_indexes"] == [1, 3] and answer["num_context_words"] == 28
    (sent,) = sent_texts(rows, "answer", "q")
    assert sent.index("LAKE heron") < min(sent.index("A heron"), sent.index("the heron left"))
    assert "miller" not in sent and "TOWN" not in sent
    again = raptor(tmp_path, 30, *SUMMARIES, ANSWER)
    assert len(again["calls"]) == 4 and again == rows, "resumed without a call"


@pytest.mark.slow
@pytest.mark.parametrize("node_words", [15, 2])
def test_a_summary_alone_has_room(tmp_path: Path, node_words: int) -> None:
    """The best node is read in any case."""
    (answer,) = raptor(tmp_path, node_words, *SUMMARIES, ANSWER)["answers"]
    assert answer["page_indexes"] == [] and answer["num_context_words"] == 4


def test_the_test_that_the_page_shows_passes(tmp_path: Path) -> None:
    shown = blocks("docs/extending.md", "python")
    (code,) = [code for code in shown if "gistmill.testing" in code]
    shutil.copytree(EXAMPLES / "raptor", tmp_path / "raptor")
    (tmp_path / "test_raptor.py").write_text(code)
    pytest = "import sys, pytest; sys.exit(pytest.main(sys.argv[1:]))"
    done = forked("-c", pytest, "-q", "-p", "no:cacheprovider", "test_raptor.py", folder=tmp_path)
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr
