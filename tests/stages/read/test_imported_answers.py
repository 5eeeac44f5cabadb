"""Answers of other systems: their files, what is made of each, and which units a change redoes."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.graph.preparation import prepare
from jobs.graph.resolved_run import read_run, run_of
from jobs.run.stored_run import with_predictions
from pipeline.core.errors import Problem, UsageError
from pipeline.core.rows import UnitRows
from pipeline.files.storage import as_path
from stages.read.imported_answers import ImportedAnswer, read_predictions
from stages.tables.answers import Answer
from tests.support.reading import document, never, question, run
from tests.support.texts.loading import written

THEIRS = {"q1": "Ann.", "q2": "2 Bs", "7": ""}
OPTIONS = ("Ships", "Stars", "Gulls and waves", "Books")


@pytest.mark.parametrize("key", ["answer", "hypothesis", "prediction"])
def test_rows_by_id(tmp_path: Path, key: str) -> None:
    rows = [{"question_id": i, key: a, "other": 1} for i, a in THEIRS.items()]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "c.parquet")
    lines, whole = written(tmp_path / "a.jsonl", *rows), written(tmp_path / "b.json", rows)
    for file in (lines, whole, tmp_path / "c.parquet"):
        assert read_predictions(str(file)) == THEIRS
    table = (";".join(map(str, row)) for row in [rows[0], *(row.values() for row in rows)])
    in_csv = written(tmp_path / "d.csv", *table)
    assert read_predictions(str(in_csv)) == {**THEIRS, "7": None}


def test_an_object_by_id_is_the_whole_file(tmp_path: Path) -> None:
    """As SCROLLS has it. A half surrogate pair is no text."""
    for name in ("a.json", "a.jsonl"):
        assert read_predictions(str(written(tmp_path / name, THEIRS))) == THEIRS
    path = written(tmp_path / "a.json", '{"q1": "a\\ud800b", "q2": [1]}')
    assert read_predictions(str(path)) == {"q1": "a\ufffdb", "q2": [1]}


def test_the_file_is_stored_with_its_whole_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later launch, from another folder, reads it again; the run's name is the same."""
    path = str(written(tmp_path / "theirs.json", {"q1": "x"}))
    monkeypatch.chdir(tmp_path)
    words = ["corpus=demo", "rater=none", "method=Theirs"]
    resolved = with_predictions([*words, "predictions=theirs.json"])
    assert resolved.config.predictions == {"Theirs": path}
    assert resolved.name == with_predictions([*words, f"predictions={path}"]).name


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"question_id": "q", "answer": "a"}\n' * 2, "a.jsonl:2: `question_id` 'q' is used twice"),
        ('{"question_id": "q", "answer": "a"}\n{"answer": "a"}\n', "a.jsonl:2: no `question_id`"),
        ('{"question_id": "q", "reply": "a"}\n', "one of answer, hypothesis, prediction is needed"),
        ('{"question_id": "q", "answer": "", "prediction": ""}\n', "a.jsonl:1: one of answer, h"),
        ('{"question_id": ["q"], "answer": "a"}\n', "a.jsonl:1: `question_id` is a list"),
        ('{"question_id": "q", "answ\n', "a.jsonl:1: not JSON"),
        ('{"q1": "a"}\n{"q2": "b"}\n', "a.jsonl:1: no `question_id`; "),
        ("\n", "a.jsonl: holds no answer"),
    ],
)
def test_a_file_that_cannot_be_used(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(UsageError, match=re.escape(says)):
        read_predictions(str(written(tmp_path / "a.jsonl", text)))


def test_what_is_no_file(tmp_path: Path) -> None:
    damaged = written(tmp_path / "a.jsonl", "%PDF-1.7")
    guessed = tmp_path / "a.csv"
    guessed.write_bytes("question_id,answer\nq1,Löwen\n".encode("cp1252"))
    for path, says in (
        (tmp_path / "none", "no such file"), (tmp_path, "a folder"),
        (guessed, r"^a\.csv: .*cp1252; save it as UTF-8"),
        (damaged, "a PDF, not text; .*; name a file with answers"),
    ):  # fmt: skip
        with pytest.raises(UsageError, match=says):
            read_predictions(str(path))


LETTERS = ("B", "A", "a lamp", "A lamp")


@pytest.mark.parametrize(
    ("value", "options", "index", "problem"),
    [
        (" Ann, of course. ", (), None, None),
        *((value, (), None, "no_answer") for value in (None, " \n")),
        *((value, (), None, "bad_input") for value in (19, True, ["a"])),
        ("(c)", OPTIONS, 2, None), ("Answer: (B)", OPTIONS, 1, None),
        ("gulls  and Waves.", OPTIONS, 2, None), ("Books", OPTIONS, 3, None),
        ("(A) Ships", OPTIONS, 0, None), ("Z", OPTIONS, None, "out_of_range"),
        ("Answer: (E)", OPTIONS, None, "out_of_range"), ("Gulls", OPTIONS, None, "unparseable"),
        ("A man with a lamp", OPTIONS, None, "unparseable"),
        # Options whose texts are letters, or the same text twice.
        ("A", LETTERS, None, "unparseable"), ("A Lamp", LETTERS, None, "unparseable"),
        ("D", LETTERS, 3, None), ("F", ("E", "F"), 1, None),
    ],
)  # fmt: skip
def test_an_answer_in_words_or_the_option_by_letter_or_text(
    tmp_path: Path, value: Any, options: Sequence[str], index: int | None, problem: Problem | None
) -> None:
    path = str(written(tmp_path / "a.json", {"q1": value}))
    rows = UnitRows(document("Some text."), (question("q1", options=tuple(options)),))
    (row,), _ = run(ImportedAnswer(file=path), rows, never())
    text = None if problem in ("no_answer", "bad_input") else value.strip()
    assert row == Answer(
        document_id="d", question_id="q1", reader="given", answer=text, answer_index=index,
        problem=problem, detail=row.detail, num_document_words=2,
        num_answer_words=len((text or "").split()),
    )  # fmt: skip
    assert (row.detail is None) == (problem is None)


def test_ids_are_those_of_a_corpus_that_is_read_whole(tmp_path: Path) -> None:
    path = str(written(tmp_path / "theirs.json", {"meeting-02": "a", "q3": "b"}))
    values = read_run([f"warehouse={tmp_path}"]).config.model_dump(mode="json")
    values |= {"methods": "", "predictions": {"theirs": path}}
    prepare(run_of({**values, "limit": 1}), as_path(tmp_path), lambda line: None)
    with pytest.raises(UsageError, match=r"theirs.json: no question 'q3' in corpus=demo; use the"):
        prepare(run_of(values), as_path(tmp_path), lambda line: None)
