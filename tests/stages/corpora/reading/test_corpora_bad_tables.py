"""What comes of wrong rows in a folder of texts or tables: see test_corpora_bad_input.py."""

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.core.rows import Document
from stages.corpora import Loaded
from tests.support.texts.loading import bad, good, loaded, written

pytestmark = pytest.mark.sampled


def bad_documents(corpus: list[Loaded]) -> list[Document]:
    return [item.document for item in corpus if item.document.problem]


def test_a_text_that_cannot_be_used_keeps_its_questions(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one", encoding="utf-8")
    (tmp_path / "b.txt").write_text(" \n", encoding="utf-8")
    (tmp_path / "c.txt").symlink_to(tmp_path / "nowhere")
    written(tmp_path / "questions.jsonl", {"document_id": "b", "question": "b?"})
    corpus = loaded(tmp_path, "text")
    assert [row.detail for row in bad_documents(corpus)] == [
        "b.txt: the text has no words; add it or delete the document",
        "c.txt: No such file or directory; fix or delete it",
    ]
    assert good(corpus[1].questions) == ["b?"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"question": None}, "no `question`"),
        ({"question": ""}, "`question` is empty"),
        ({"question": 7}, "`question` is a number"),
        ({"question_id": []}, "`question_id` is a list"),
        ({"options": {"A": "x"}}, "`options` is not a list"),
        ({"answer_index": 0}, "is not possible without options"),
        ({"options": ["x"], "answer_index": 1}, "is not a number from 0 to 0"),
        ({"options": ["x"], "answer_index": False}, "`answer_index` false"),
        ({"references": {"text": "a"}}, "`references` is not a list of strings"),
        ({"references": ["a", None]}, "`references` is not a list of strings"),
        ({"question_type": 3}, "`question_type` is a number"),
        ({"asked_at": 3}, "`asked_at` is a number"),
        ({"metadata": "[1]"}, "`metadata` is no JSON object"),
        ({"metadata": "{"}, "`metadata` is no JSON object"),
        ({"metadata": '{"a": NaN}'}, "metadata cannot be written as JSON"),
        ({"evidence": "all"}, "`evidence` is a string"),
        ({"evidence": [[0, 4]]}, "[0, 4] is no start and end of the document's characters (0 to 3"),
        ({"evidence": [[2, 1]]}, "[2, 1] is no start"),
        ({"evidence": [[1, 1]]}, "[1, 1] is no start"),
        ({"evidence": [["0", "1"]]}, '["0", "1"] is no start'),
        ({"evidence": [{"start_char": 0}]}, '{"start_char": 0} is no start'),
        ({"evidence": [7]}, "7 is no start"),
    ],
)
def test_a_bad_question_row_costs_only_itself(tmp_path: Path, change: Any, words: str) -> None:
    rows = [{"document_id": "a", "question": "good"}, {"document_id": "a", "question": "x"}]
    written(tmp_path / "documents.jsonl", {"document_id": "a", "text": "one"})
    written(tmp_path / "questions.jsonl", rows[0], {**rows[1], **change})
    [item] = loaded(tmp_path, "tables")
    assert item.document.problem is None and good(item.questions) == ["good"]
    [detail] = bad(item.questions)
    assert detail.startswith("questions.jsonl:2: ") and words in detail


def test_questions_without_a_document_are_kept_as_bad_rows(tmp_path: Path) -> None:
    written(tmp_path / "documents.jsonl", {"document_id": "a", "text": "one"})
    lost = {"document_id": "z", "question": "lost", "question_id": "l"}
    rows = [lost, "{", {"question": "whose?"}, {**lost, "question_id": "m"}, {"document_id": []}]
    written(tmp_path / "questions.jsonl", *rows)
    corpus = loaded(tmp_path, "tables")
    ids = [item.document.document_id for item in corpus]
    assert ids == ["a", "z", *(f"questions.jsonl:{line}" for line in (2, 3, 5))]
    assert len(bad_documents(corpus)) == 4
    assert [q.question_id for q in corpus[1].questions] == ["l", "m"]
    assert [q.question for item in corpus for q in item.questions][:4] == ["lost"] * 2 + [
        "",
        "whose?",
    ]
    words = 'questions.jsonl:4: no document has the document_id "z"; add it or delete the question'
    assert corpus[1].questions[1].detail == words
    assert [bad(item.questions)[0].split(": ", 1)[1] for item in corpus[2:]] == [
        "not JSON (Expecting property name enclosed in double quotes, column 2); "
        "fix or delete the line",
        "no `document_id`; add it",
        "`document_id` is a list, not a string; fix it",
    ]


def test_bad_and_repeated_documents_keep_the_others(tmp_path: Path) -> None:
    documents = [
        {"document_id": "a", "text": "one"},
        {"document_id": "a", "text": "again"},
        {"document_id": "a-2", "text": "its own"},
        {"document_id": "n", "text": 5},
        {"document_id": "e", "text": ""},
        {"document_id": "m", "text": "x", "metadata": [1]},
        {"document_id": {}, "text": "x"},
        {"document_id": "t"},
        "{",
    ]
    written(tmp_path / "documents.jsonl", *documents)
    asked = ("a", "a-2", "n", "e")
    written(tmp_path / "questions.jsonl", *({"document_id": i, "question": f"{i}?"} for i in asked))
    corpus = loaded(tmp_path, "tables")
    assert [item.document.document_id for item in corpus if not item.document.problem] == [
        "a",
        "a-2",
    ]
    assert [
        (row.detail or "").split(": ", 1)[1].split(";")[0] for row in bad_documents(corpus)
    ] == [
        '`document_id` "a" is used twice, first in documents.jsonl:1',
        "`text` is a number, not a string",
        "the text has no words",
        "`metadata` is no JSON object",
        "`document_id` is an object, not a string",
        "no `text`",
        "not JSON (Expecting property name enclosed in double quotes, column 2)",
    ]
    assert corpus[1].document.document_id == "documents.jsonl:2" and corpus[1].questions == ()
    questions = {item.document.document_id: good(item.questions) for item in corpus}
    assert [questions[asker] for asker in asked] == [[f"{asker}?"] for asker in asked]


def test_lone_surrogates_become_replacement_characters(tmp_path: Path) -> None:
    row = r'{"document_id": "\udc00", "text": "a \ud800 b \ud83d\ude00", "title": "\ud800x", '
    written(tmp_path / "documents.jsonl", row + r'"metadata": "{\"k\": \"\\ud800\"}"}')
    [item] = loaded(tmp_path, "tables")
    assert item.document.text == "a \ufffd b \U0001f600"
    assert (item.document.document_id, item.document.title) == ("\ufffd", "\ufffdx")
    assert item.document.metadata == '{"k": "\ufffd"}'


def test_a_file_name_that_is_no_utf8_makes_an_id_that_is(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"x\xff.txt")).write_text("", encoding="utf-8")
    (tmp_path / "y.txt").write_text("one", encoding="utf-8")
    [item, _] = loaded(tmp_path, "text")
    assert item.document.document_id == "x\ufffd"
    assert (item.document.detail or "").startswith("x\ufffd.txt: the text has no words")


def test_bad_parquet_rows_are_named_by_their_number(tmp_path: Path) -> None:
    table = pa.table({"document_id": ["a", "b"], "text": ["one", None], "title": [None, "B"]})
    pq.write_table(table, tmp_path / "documents.parquet")
    [_, second] = loaded(tmp_path, "tables")
    assert second.document.detail == "documents.parquet:2: no `text`; add it"
