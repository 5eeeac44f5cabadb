"""The user's own corrections, and LiteraryQA's annotations and their questions, on lines made by
hand in its format."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import gistmill

SCRIPT = str(Path(__file__).with_name("corrected.py"))
QUESTIONS = [  # the question and its two answers, in the style of NarrativeQA
    ("Who owned the mill ?", "Piet", "the miller Piet"),
    ("Where stood the mill?", "By the river", "beside a river"),
    ("Who owned the mill ?", "A miller.", "Piet the miller"),
    ("Did it burned?", "Yes.", "yes"),
    ("Was it rebuild?", "Yes.", "yes"),
    ("Why did he left?", "For love", "because of a song"),
    ("What colour was the door?", "green", "It was green"),
]
CHOICE = {"question_id": "c", "document_id": "d2", "question": "Which?", "options": ["a", "b"],
          "answer_index": 0}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A corpus of two books: q0 to q6 are about the first, c, with options, about the second."""
    asked = [{"question_id": f"q{n}", "document_id": "d1", "question": question,
              "references": answers, "evidence": [[4, 8]], "metadata": {"n": n}}
             for n, (question, *answers) in enumerate(QUESTIONS)]  # fmt: skip
    books = [{"document_id": name, "title": name, "text": "The mill stood by the river."}
             for name in ("d1", "d2")]  # fmt: skip
    (tmp_path / "corpus").mkdir()
    written(tmp_path / "corpus" / "documents.jsonl", *books)
    written(tmp_path / "corpus" / "questions.jsonl", *asked, CHOICE)
    return tmp_path


def written(file: Path, *rows: Any) -> Path:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def corrected(folder: Path, *rows: Any) -> tuple[dict[str, dict[str, Any]], str]:
    """The questions of the corrected corpus as gistmill loads it, by id, and the standard error."""
    words = ["corpus=tables", f"corpus.path={folder / 'corpus'}"]
    mine, new = written(folder / "mine.jsonl", *rows), folder / "new"
    command = [sys.executable, SCRIPT, str(mine), str(new), *words]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    corpus = gistmill.config("corpus=tables", f"corpus.path={folder / 'new'}").corpus
    found = [question for loaded in corpus.load() for question in loaded.questions]
    return {q.question_id: {"text": q.question, "references": q.references, "options": q.options,
                            "evidence": q.evidence, **json.loads(q.metadata)}
            for q in found}, done.stderr  # fmt: skip


def test_corrections_by_id_leave_the_others_as_they_are(folder: Path) -> None:
    before, _ = corrected(folder, {"question_id": "q9"})
    (folder / "new").rename(folder / "old")
    made, said = corrected(
        folder,
        {"question_id": "q0", "question": "Whose was the mill?", "references": "Piet's"},
        {"question_id": "q1", "references": ["A", "B"], "replaces": [*QUESTIONS[1][1:]]},
        {"question_id": "q2", "question": "Who?", "replaces": "What?"},
        {"question_id": "c", "references": ["b"]},
        {"question_id": "q9", "question": "Who?"},
    )  # fmt: skip
    assert made["q0"] == {
        **before["q0"], "text": "Whose was the mill?", "references": ("Piet's",),
        "original_question": "Who owned the mill ?",
        "original_references": ["Piet", "the miller Piet"],
    }  # fmt: skip
    assert (made["q1"]["text"], made["q1"]["references"]) == (QUESTIONS[1][0], ("A", "B"))
    unchanged = [name for name in before if made[name] == before[name]]
    assert unchanged == ["q2", "q3", "q4", "q5", "q6", "c"]
    assert [line.split(":")[0] for line in said.splitlines()] == ["q2", "c", said.splitlines()[2]]
    assert "1 rows are of no question_id of the corpus, such as q9" in said


def qa(question: str, *answers: str, reworded: bool = False, changed: Sequence[bool] = ()) -> Any:
    """An annotation; `changed`: True for each modified answer, by default none."""
    return {"question": question, "answers": [*answers], "is_question_modified": reworded,
            "is_answer_modified": [*(changed or [False] * len(answers))]}  # fmt: skip


@pytest.mark.parametrize(
    ("annotation", "number", "references"),
    [  # by its text, whatever the tokenization
        (qa("where stood the mill?", "By the river", "Beside a river"), 1,
         ("By the river", "beside a river")),
        # among equal questions, the one with the answers
        (qa("Who owned the mill?", "A miller.", "Piet", changed=[False, True]), 2,
         ("A miller.", "Piet")),
        # reworded: among those with an unmodified answer, the one worded most alike
        (qa("Was it rebuilt?", "yes", "Yes, later", reworded=True, changed=[False, True]), 4,
         ("Yes.", "Yes, later")),
        (qa("Why did he leave?", "For love ", reworded=True), 5, ("For love",)),
    ],
)  # fmt: skip
def test_the_question_that_an_annotation_is_of(
    folder: Path, annotation: Any, number: int, references: tuple[str, ...]
) -> None:
    made, said = corrected(folder, {"document_id": "d1", "qas": [annotation]})
    assert said == "" and [*made] == [f"q{number}"], "what it does not have is left out"
    (found,) = made.values()
    assert found["references"] == references and found["n"] == number
    is_reworded = annotation["is_question_modified"]
    assert found["text"] == (annotation["question"] if is_reworded else QUESTIONS[number][0])


def test_one_of_which_nothing_is_left_is_found_between_its_neighbours(folder: Path) -> None:
    asked = [
        qa("Was it rebuilt?", "Yes.", "yes", reworded=True),
        qa("For what did he go away?", "A song", "Music", reworded=True, changed=[True, True]),
        qa("What colour was the door?", "green", "It was green"),
        qa("Who owned the barn?", "Piet"),
    ]
    made, said = corrected(folder, {"document_id": "d1", "qas": asked})
    assert [*made] == ["q4", "q5", "q6"] and made["q5"]["references"] == ("A song", "Music")
    assert said == "d1: no question is that of 'Who owned the barn?'\n"
