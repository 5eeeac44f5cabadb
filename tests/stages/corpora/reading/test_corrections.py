"""Corrections of one's own, by question_id: what they change, and those that fit nothing."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.core.errors import UsageError
from pipeline.core.rows import Question
from stages.corpora import Loaded
from tests.support.texts.loading import asked, bad, details, loaded, written
from tests.support.texts.small_corpus import document, question, write

WHO = "What is said in number 1 about mill1?"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A corpus of two documents: q1 and q2 are about the first, q3, with options, about the
    second."""
    choice = {**question(3, of=2), "options": ["a", "b"], "answer_index": 0, "references": ["a"]}
    write(tmp_path, [document(1), document(2)], [question(1, 1), question(2, 1, 2), choice])
    return tmp_path


def corrected(folder: Path, *rows: Any, name: str = "mine.jsonl") -> list[Loaded]:
    (folder / "corrections").mkdir(exist_ok=True)
    file = written(folder / "corrections" / name, *rows)
    return loaded(folder, "tables", corrections=str(file))


def by_id(corpus: list[Loaded]) -> dict[str, Question]:
    return {question.question_id: question for question in asked(corpus)}


def test_a_correction_replaces_text_and_references_and_keeps_the_originals(folder: Path) -> None:
    before = by_id(loaded(folder, "tables"))
    made = corrected(
        folder,
        {"question_id": "q1", "question": "Which mill?", "references": "One", "note": "a typo"},
        {"question_id": "q2", "references": ["A", "B", "C"],
         "replaces": ["reference 0 of question 2", "reference 1 of question 2"]},
    )  # fmt: skip
    found = by_id(made)
    assert found["q1"] == replace(
        before["q1"],
        question="Which mill?",
        original_question=WHO,
        references=("One",),
        original_references=("reference 0 of question 1",),
    )
    assert found["q2"] == replace(
        before["q2"], references=("A", "B", "C"), original_references=before["q2"].references
    )
    assert found["q3"] == before["q3"] and details(made) == []


def test_what_is_as_it_was_is_no_correction(folder: Path) -> None:
    rows = [{"question_id": "q1", "question": WHO, "references": ["reference 0 of question 1"]}]
    assert by_id(corrected(folder, *rows)) == by_id(loaded(folder, "tables"))


def test_corrections_may_be_csv(folder: Path) -> None:
    lines = ["question_id,references,replaces", f'q1,"[""A"", ""B""]",{WHO}', "q2,One,"]
    found = by_id(corrected(folder, *lines, name="mine.csv"))
    assert (found["q1"].references, found["q2"].references) == (("A", "B"), ("One",))


RIGHT = {"question_id": "q2", "references": ["A"]}


@pytest.mark.parametrize(
    ("row", "detail"),
    [
        ({"question_id": "q1", "question": "Which?", "replaces": "What?"},
         f'mine.jsonl:2: replaces "What?", but the corpus has "{WHO}"; fix or delete it'),
        ({"question_id": "q1", "references": ["A"], "replaces": ["B"]},
         'mine.jsonl:2: replaces ["B"], but the corpus has ["reference 0 of question 1"]; '
         "fix or delete it"),
        ({"question_id": "q1"}, "mine.jsonl:2: neither `question` nor `references`; add one"),
        ({"question_id": "q1", "references": [{}]},
         "mine.jsonl:2: `references` is not a list of strings; fix it"),
        ({"question_id": "q1", "question": " "},
         "mine.jsonl:2: `question` is empty; write the question or delete it"),
        ({"question_id": "q3", "references": ["b"]},
         "mine.jsonl:2: the question has options; correct its answer_index in the corpus"),
    ],
)  # fmt: skip
def test_a_correction_that_does_not_fit_is_a_row_beside_the_question_as_it_was(
    folder: Path, row: dict[str, Any], detail: str
) -> None:
    before = by_id(loaded(folder, "tables"))
    made = corrected(folder, RIGHT, row)
    found = by_id(made)
    assert found.pop("q2").references == ("A",)
    [misfit] = [found.pop(name) for name in [*found] if name.startswith("correction ")]
    assert (misfit.problem, misfit.detail) == ("bad_input", detail)
    assert json.loads(misfit.metadata) == {"correction": row}
    assert misfit.document_id == before[row["question_id"]].document_id
    assert found == {name: before[name] for name in ("q1", "q3")}


@pytest.mark.parametrize(
    ("row", "detail"),
    [
        ({"question_id": "q9", "question": "Which?"},
         'mine.jsonl:2: no question has the question_id "q9"; fix or delete it'),
        ({"question": "Which?"}, "mine.jsonl:2: no `question_id`; add it"),
        ("{", "mine.jsonl:2: not JSON (Expecting property name enclosed in double quotes, "
              "column 2); fix or delete the line"),
        (RIGHT, 'mine.jsonl:2: `question_id` "q2" is used twice, first in mine.jsonl:1; '
                "give this row another or delete it"),
    ],
)  # fmt: skip
def test_a_correction_of_no_question_is_a_row_at_the_end(
    folder: Path, row: Any, detail: str
) -> None:
    made = corrected(folder, RIGHT, row)
    assert [item.document.document_id for item in made[:2]] == ["d1", "d2"]
    assert details(made) == [detail, detail] and len(made) == 3
    assert bad(made[2].questions) == [detail]


def test_a_bad_question_cannot_be_corrected(tmp_path: Path) -> None:
    write(tmp_path, [document(1)], [{**question(1, 1), "references": {}}, question(2, 1)])
    made = corrected(tmp_path, {"question_id": "q1", "question": "Which?"})
    assert "mine.jsonl:1: the question itself cannot be read; fix that first" in details(made)


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (['{"question_id": "x1", "question": "Which?"}'],
         "mine.jsonl: expected corrections of corpus=tables, which has no question_id of the file, "
         'such as "x1", at all; set corpus.corrections=... or another corpus or corpus.split'),
        (['{"id": "q1", "question": "Which?"}'],
         "mine.jsonl: expected corrections, rows with the key question_id or qas; "
         "set corpus.corrections=..."),
        (["no"], "mine.jsonl: no line or row in it is an object; mine.jsonl:1: not JSON "
                 "(Expecting value, column 1); fix or delete the line"),
        ([], "mine.jsonl: no line or row in it is an object; set corpus.corrections=..."),
    ],
)  # fmt: skip
def test_a_file_that_corrects_nothing_here_is_refused(
    folder: Path, lines: list[str], says: str
) -> None:
    with pytest.raises(UsageError) as error:
        corrected(folder, *lines)
    assert str(error.value).endswith(says) and "\n" not in str(error.value)


def test_a_path_with_nothing_to_read_is_refused(folder: Path) -> None:
    (folder / "empty").mkdir()
    for path, says in (
        (folder / "no", "no: no such file or folder; set corpus.corrections=..."),
        (folder / "empty", "empty: no *.jsonl in this folder; set corpus.corrections=..."),
        (Path("/dev/null"), "/dev/null: a device, not a file; set corpus.corrections=..."),
    ):
        with pytest.raises(UsageError) as error:
            loaded(folder, "tables", corrections=str(path))
        assert str(error.value).endswith(says)
