"""The plugins of docs/examples, each run from its own folder; and the test of one that
docs/extending.md shows."""

import json
import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import ROOT
from tests.support.docs.pages import blocks
from tests.support.fork_server import forked

EXAMPLES = ROOT / "docs" / "examples"
CODE = """
import json, sys
from pathlib import Path
from gistmill.testing import run
plugin, method, replies, words, folder, more = json.loads(sys.argv[1])
rows = run(plugin, method, replies, *words, folder=Path(folder), **more)
print(json.dumps(rows, default=str))
"""
Rows = dict[str, list[dict[str, Any]]]
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
REPLIES: list[dict[str, Any]] = [  # summaries of the root, and of the two clusters below it
    {"prompt": "raptor_summary", "match": "TRADE.*LAKE", "reply": "TOWN of trade."},
    {"prompt": "raptor_summary", "match": "white flour.*made bread", "reply": "TRADE in flour."},
    {"prompt": "raptor_summary", "match": "silver.*At night", "reply": "LAKE heron hunts fish."},
    {"prompt": "answer", "reply": "It hunted fish."},
]  # fmt: skip


def example_rows(
    plugin: str, folder: Path, method: str, replies: Any, *words: str, **more: Any
) -> Rows:
    """The rows by table of a run of the example in `folder`, in a process of its own, which starts
    in docs/examples and names the plugin as it is called there."""
    own = [plugin, method, replies, words, str(folder), more]
    done = forked("-c", CODE, json.dumps(own), folder=EXAMPLES)
    assert done.returncode == 0, done.stderr
    rows: Rows = json.loads(done.stdout.splitlines()[-1])
    return rows


def sent_texts(rows: Rows, prompt: str, question: str) -> list[str]:
    """The texts of the requests of a prompt, by turn."""
    calls = [c for c in rows["calls"] if (c["prompt"], c["question_id"]) == (prompt, question)]
    calls.sort(key=lambda call: call["turn"] or 0)
    return ["\n".join(one["content"] for one in call["messages"]) for call in calls]


def raptor(folder: Path, node_words: int) -> Rows:
    method = f"raptor(chunk_words=12,cluster_size=2,node_words={node_words})"
    return example_rows("raptor", folder, method, REPLIES, document=DOCUMENT, questions=QUESTIONS)


@pytest.mark.slow
def test_clusters_of_raptor_are_summarized_level_by_level(tmp_path: Path) -> None:
    rows = raptor(tmp_path, 30)
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
    assert len(rows["calls"]) == 4 and raptor(tmp_path, 30) == rows, "resumed without a call"


@pytest.mark.slow
@pytest.mark.parametrize("node_words", [15, 2])
def test_a_summary_of_raptor_alone_has_room(tmp_path: Path, node_words: int) -> None:
    """The best node is read in any case."""
    (answer,) = raptor(tmp_path, node_words)["answers"]
    assert answer["page_indexes"] == [] and answer["num_context_words"] == 4


SEARCH = {"prompt": "react", "reply": "I do not know yet.\nSearch: the ditch\nPage 0: I guess"}


def react(folder: Path, *replies: dict[str, Any], steps: int = 6) -> Rows:
    """A run on the document of gistmill.testing, each of whose four pages has 12 words."""
    who = [{"question_id": "who", "question": "Who dug the ditch?", "references": ["Tom"]}]
    method = f"react(max_steps={steps},top_k=1)"
    return example_rows("react", folder, method, replies, questions=who)


@pytest.mark.slow
def test_react_searches_reads_and_answers(tmp_path: Path) -> None:
    replies = [
        {"prompt": "react", "match": r"Read: 2\*\*\n", "reply": "Her brother.\nAnswer: Tom"},
        {"prompt": "react", "match": "Search: the ditch\n", "reply": "There it is.\n**Read: 2**"},
        SEARCH,
    ]
    rows = react(tmp_path, *replies)
    (answer,) = rows["answers"]
    assert (answer["answer"], answer["problem"]) == ("Tom", None)
    assert (answer["page_indexes"], answer["num_context_words"]) == ([2], 12)
    first, second, third = sent_texts(rows, "react", "who")
    assert "Page 2:" not in first and "steps left: 6" in first
    # Of the reply only what stands before its first action is shown, with what was found.
    found = "Page 2: Her brother Tom dug a ditch from the lake to the wheel."
    assert f"I do not know yet.\nSearch: the ditch\n{found}" in second and "I guess" not in second
    assert third.count("Her brother Tom dug a ditch") == 2 and "steps left: 4" in third
    assert react(tmp_path, *replies) == rows, "resumed without a call"


def test_react_stops_at_the_limit(tmp_path: Path) -> None:
    rows = react(tmp_path, SEARCH, steps=2)
    (answer,) = rows["answers"]
    assert (answer["answer"], answer["problem"]) == (None, "no_answer")
    assert [call["turn"] for call in rows["calls"]] == [0, 1]
    assert "steps left: 1" in sent_texts(rows, "react", "who")[1]


@pytest.mark.slow
@pytest.mark.parametrize("lost", ["I wonder.", "Read: 9", "Read: the river"])
def test_what_is_no_step_of_react_is_said(tmp_path: Path, lost: str) -> None:
    said = {"prompt": "react", "match": "no step. There are pages 0 to 3", "reply": "Answer: Tom"}
    rows = react(tmp_path, said, {"prompt": "react", "reply": lost})
    (answer,) = rows["answers"]
    assert (answer["answer"], answer["problem"], answer["page_indexes"]) == ("Tom", None, [])
    assert len(rows["calls"]) == 2


# F = 10PR / (R + 9P); of it the share 1 - (runs / matches)^3 / 2 is left.
METEOR = [
    ("The cat sat on the mat.", "the cat sat on the mat", 1 - Fraction(1, 2) / 6**3),
    ("on the mat sat the cat", "the cat sat on the mat", 1 - Fraction(3, 6) ** 3 / 2),
    # The authors' example: 6 of 7 words match, in the runs `the president` and `spoke ...`.
    ("the president then spoke to the audience", "the president spoke to the audience",
     Fraction(60, 61) * (1 - Fraction(2, 6) ** 3 / 2)),
    # The second `the`, before `mat`: one run of two words, where the first would make two runs.
    ("the mat", "the cat on the mat", Fraction(20, 47) * (1 - Fraction(1, 2) ** 3 / 2)),
    ("Rivers rise", "river rises", 1 - Fraction(1, 2) ** 3 / 2),  # by their stems
    ("rises rise", "rise", Fraction(10, 11) * Fraction(1, 2)),  # P 1/2, R 1: the exact one alone
    ("mill", "the old mill stands", Fraction(10, 37) * Fraction(1, 2)),  # P 1, R 1/4
    ("yes", "no", Fraction(0)),
]  # fmt: skip


@pytest.mark.slow
def test_meteor_s_values_are_those_worked_by_hand(tmp_path: Path) -> None:
    questions = [
        {"question_id": f"q{n}", "question": f"Case {n}?", "references": ["zzz", reference]}
        for n, (_, reference, _) in enumerate(METEOR)
    ]
    replies = [{"prompt": "answer", "match": f"Case {n}", "reply": answer}
               for n, (answer, _, _) in enumerate(METEOR)]  # fmt: skip
    expected = {f"q{n}": float(100 * value) for n, (*_, value) in enumerate(METEOR)}
    for _ in ("made", "resumed"):
        rows = example_rows("meteor", tmp_path, "full_text", replies, "family=meteor",
                            questions=questions)  # fmt: skip
        scores = [row for row in rows["scores"] if row["metric"] == "meteor"]
        assert {row["question_id"]: row["value"] for row in scores} == pytest.approx(expected)
        assert len(rows["calls"]) == len(METEOR)


def test_the_test_that_the_page_shows_passes(tmp_path: Path) -> None:
    shown = blocks("docs/extending.md", "python")
    (code,) = [code for code in shown if "gistmill.testing" in code]
    shutil.copytree(EXAMPLES / "raptor", tmp_path / "raptor")
    (tmp_path / "test_raptor.py").write_text(code)
    pytest = "import sys, pytest; sys.exit(pytest.main(sys.argv[1:]))"
    done = forked("-c", pytest, "-q", "-p", "no:cacheprovider", "test_raptor.py", folder=tmp_path)
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr
