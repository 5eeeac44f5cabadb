"""LiteraryQA's annotations over NarrativeQA: which question each is of, on lines made by hand in
its format and on its own of seven novels, against a reader of the raw files."""

import csv
import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.core.errors import UsageError
from pipeline.core.rows import Question
from stages.corpora import Loaded
from tests.support.command import WHOLE
from tests.support.texts.loading import asked, details, loaded, written

STORY = "The mill stood by the river and the miller was called Piet. " * 20
QUESTIONS = [  # of the first book: the question and its two answers
    ("Who owned the mill ?", "Piet", "the miller Piet"),
    ("Where stood the mill?", "By the river", "beside a river"),
    ("Who owned the mill ?", "A miller.", "Piet the miller"),
    ("Did it burned?", "Yes.", "yes"),
    ("Was it rebuild?", "Yes.", "yes"),
    ("Why did he left?", "For love", "because of a song"),
    ("What colour was the door?", "green", "It was green"),
]  # fmt: skip
D1, D2 = "d1", "d2"


def qa(question: str, *answers: str, reworded: bool = False, changed: Sequence[bool] = ()) -> Any:
    """An annotation; `changed`: of the answers, none of them by default."""
    return {
        "question": question,
        "answers": [*answers],
        "is_question_modified": reworded,
        "is_answer_modified": [*(changed or [False] * len(answers))],
    }


def book(*qas: Any, document_id: str = D1, split: str = "validation") -> dict[str, Any]:
    return {"document_id": document_id, "gutenberg_id": "1", "split": split, "qas": [*qas]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """NarrativeQA's files: d1 of valid with QUESTIONS, d2 of test with one question."""
    about = ["document_id", "set", "kind", "story_url", "story_file_size", "wiki_title",
             "story_start", "story_end"]  # fmt: skip
    documents = [[D1, "valid", "gutenberg", "u", "1", "One", "", ""],
                 [D2, "test", "gutenberg", "u", "1", "Two", "", ""]]  # fmt: skip
    qaps = [[D1, "valid", *row] for row in QUESTIONS] + [[D2, "test", "Who sang?", "Ann", "ann"]]
    _csv(tmp_path / "documents.csv", [about, *documents])
    _csv(tmp_path / "qaps.csv", [["document_id", "set", "question", "answer1", "answer2"], *qaps])
    (tmp_path / "tmp").mkdir()
    for name in (D1, D2):
        (tmp_path / "tmp" / f"{name}.content").write_text(STORY)
    return tmp_path


def _csv(file: Path, rows: list[list[str]]) -> None:
    with file.open("w", newline="") as content:
        csv.writer(content).writerows(rows)


def corrected(folder: Path, *rows: Any, **more: Any) -> list[Loaded]:
    file = written(folder / "literaryqa.jsonl", *rows)
    return loaded(folder, "narrativeqa", corrections=str(file), **more)


def of_first(folder: Path, *qas: Any) -> dict[int, Question]:
    """The questions of d1 by their place in QUESTIONS; bad rows are asserted to be none."""
    made = corrected(folder, book(*qas))
    assert details([replace(item, questions=()) for item in made if not item.is_left_out]) == []
    questions = asked(made[:1])
    assert len(questions) == len(QUESTIONS)
    return dict(enumerate(questions))


def test_a_question_is_found_by_its_text_whatever_the_tokenization(folder: Path) -> None:
    found = of_first(folder, qa("where stood the mill?", "By the river", "Beside a river"))
    before = asked(loaded(folder, "narrativeqa"))
    assert found[1] == before[1], "nothing but white space and case differs"
    assert [n for n, question in found.items() if question.skipped] == [0, 2, 3, 4, 5, 6]
    assert replace(found[0], skipped=False, detail=None) == before[0]


def test_of_equal_questions_the_one_with_the_answers_is_meant(folder: Path) -> None:
    found = of_first(folder, qa("Who owned the mill?", "A miller.", "Piet", changed=[False, True]))
    assert found[0].skipped and not found[2].skipped
    assert found[2].references == ("A miller.", "Piet")
    assert found[2].original_references == ("A miller.", "Piet the miller")
    assert found[2].original_question is None


def test_a_reworded_question_is_found_by_the_answers_that_were_kept(folder: Path) -> None:
    """Of two with equal answers it is the one worded alike; a kept answer stays as the corpus
    writes it, and an answer may have been dropped."""
    found = of_first(
        folder,
        qa("Was it rebuilt?", "yes", "Yes, later", reworded=True, changed=[False, True]),
        qa("Why did he leave?", "For love ", reworded=True),
    )
    assert [n for n, question in found.items() if not question.skipped] == [4, 5]
    assert (found[4].question, found[4].original_question) == ("Was it rebuilt?", "Was it rebuild?")
    assert found[4].references == ("Yes.", "Yes, later")
    assert (found[5].references, found[5].original_references) == (
        ("For love",), ("For love", "because of a song"),
    )  # fmt: skip


def test_a_question_of_which_nothing_is_left_is_found_between_its_neighbours(
    folder: Path,
) -> None:
    found = of_first(
        folder,
        qa("Was it rebuilt?", "Yes.", "yes", reworded=True),
        qa("For what did he go away?", "A song", "Music", reworded=True, changed=[True, True]),
        qa("What colour was the door?", "green", "It was green"),
    )
    assert found[5].question == "For what did he go away?"
    assert found[5].original_references == ("For love", "because of a song")


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (qa("Who owned the barn?", "Piet"),
         "no question of the document has this text; fix or delete it"),
        (qa("Whose barn?", "Jan", reworded=True, changed=[True]),  # two questions are left there
         "no question of the document has its unmodified answers or its place; fix or delete it"),
        (qa("Where stood the mill?", "x", "y"),  # it is the first's
         "no question of the document has this text; fix or delete it"),
        ({"question": "Who?", "answers": ["a"], "is_question_modified": True},
         "`is_answer_modified` has no boolean for each answer; fix it"),
        ({**qa("Who?", "a"), "is_answer_modified": [0]},
         "`is_answer_modified` has no boolean for each answer; fix it"),
        ({**qa("Who?", "a"), "is_question_modified": None},
         "`is_question_modified` is no boolean; fix it"),
        (3, "a number, not an object; fix or delete it"),
    ],
)  # fmt: skip
def test_an_annotation_of_no_question_is_a_row(folder: Path, bad: Any, why: str) -> None:
    good = qa("Where stood the mill?", "By the river", "beside a river")
    made = corrected(folder, book(good, bad))
    *questions, misfit = asked(made[:1])
    assert (misfit.problem, misfit.detail) == ("bad_input", f"literaryqa.jsonl:1: qas[1]: {why}")
    assert [question.skipped for question in questions].count(False) == 1


def test_a_book_that_it_does_not_have_is_left_out(folder: Path) -> None:
    first, second = corrected(folder, book(qa("Where stood the mill?", "By the river")))
    assert not first.is_left_out and second.is_left_out
    assert second.document.skipped and second.document.text == ""
    assert [question.skipped for question in second.questions] == [True]
    assert second.document.detail == "LiteraryQA: its annotations do not have it; left out"


def test_a_book_that_the_corpus_does_not_have_is_a_row(folder: Path) -> None:
    rows = book(qa("Where stood the mill?", "By the river")), book(document_id="d9")
    *_, last = corrected(folder, *rows)
    assert last.document.detail == (
        'literaryqa.jsonl:2: no document has the document_id "d9"; fix or delete it'
    )


def test_a_folder_has_both_splits_and_the_corpus_s_is_used(folder: Path) -> None:
    own = folder / "annotations"
    own.mkdir()
    first = book(qa("Where stood the mill?", "River", changed=[True]))
    second = book(qa("Who sang?", "Jo", changed=[True]), document_id=D2, split="test")
    written(own / "validation.jsonl", first)
    written(own / "test.jsonl", second)

    def new(split: str | None) -> list[tuple[str, ...]]:
        made = loaded(folder, "narrativeqa", corrections=str(own), split=split)
        assert details(i for i in made if not i.document.skipped and i.document.problem) == []
        return [question.references for question in asked(made) if question.original_references]

    assert new(None) == [("River",), ("Jo",)]
    assert (new("valid"), new("test")) == ([("River",)], [("Jo",)])


def test_annotations_of_another_split_are_refused(folder: Path) -> None:
    with pytest.raises(UsageError) as error:
        corrected(folder, book(qa("Where stood the mill?", "By the river")), split="test")
    assert str(error.value).endswith(
        "literaryqa.jsonl: expected corrections of corpus.split=test, these are of valid; set "
        "corpus.corrections=... or corpus.split=valid"
    )


def letters(text: str) -> str:
    return "".join(character for character in text.lower() if character.isalnum())


@pytest.mark.slow
@pytest.mark.whole
def test_every_annotation_of_the_seven_novels_is_of_the_question_it_was_made_from() -> None:
    """A reader of its own: in each book both lists are in the same order, so they are aligned by
    the longest sequence of pairs that share the question or an answer. 201 of 206 are annotated."""
    theirs = defaultdict(list)
    for row in csv.DictReader((WHOLE / "narrativeqa" / "qaps.csv").read_text().splitlines()):
        theirs[row["document_id"]].append(row)
    lines = [
        json.loads(line)
        for name in ("validation", "test")
        for line in (WHOLE / "literaryqa" / f"{name}.jsonl").read_text().splitlines()
    ]
    expected: dict[tuple[str, str], dict[str, Any]] = {}
    for line in lines:
        rows = theirs[line["document_id"]]
        for own, row in zip(line["qas"], aligned(line["qas"], rows), strict=True):
            answers = letters(row["answer1"]) + "|" + letters(row["answer2"])
            expected[line["document_id"], letters(row["question"]) + answers] = own
    made = loaded(WHOLE / "narrativeqa", "narrativeqa", corrections=str(WHOLE / "literaryqa"))
    told = [item for item in made if not item.document.skipped]
    questions = asked(told)
    assert details(made) == [question.detail for question in questions if question.skipped]
    assert (len(told), len(questions), len(expected)) == (7, 206, 201)
    kept = [question for question in questions if not question.skipped]
    assert len(kept) == 201
    for question in kept:
        was = question.original_references or question.references
        text = letters(question.original_question or question.question)
        own = expected.pop((question.document_id, text + "|".join(map(letters, was))))
        assert letters(question.question) == letters(own["question"])
        assert [*map(letters, question.references)] == [*map(letters, own["answers"])]
        assert (question.original_question is not None) == own["is_question_modified"]
        if any(own["is_answer_modified"]):
            assert question.original_references is not None
    assert expected == {}


def aligned(annotated: list[Any], rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """For each annotation its row: the most alike, in order (as of two texts' longest common
    subsequence)."""
    none: tuple[float, list[int]] = (float("-inf"), [])
    best: list[tuple[float, list[int]]] = [(0.0, [])] * (len(rows) + 1)
    for own in annotated:
        line = [none]
        for number, row in enumerate(rows):
            score, before = best[number]
            line.append(max(line[-1], (score + alike(own, row), [*before, number])))
        best = line
    return [rows[number] for number in best[-1][1]]


def alike(own: dict[str, Any], row: dict[str, str]) -> float:
    """Points for an equal question, and for words of question and answers in common."""
    words = {*" ".join([own["question"], *own["answers"]]).lower().split()}
    other = {*f"{row['question']} {row['answer1']} {row['answer2']}".lower().split()}
    is_same = letters(own["question"]) == letters(row["question"])
    return 10 * is_same + len(words & other) / len(words | other)
