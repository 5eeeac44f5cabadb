"""A folder of texts, and documents and questions as JSON lines or Parquet."""

import json
import re
import tracemalloc
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stages.corpora import load
from tests.support.texts.loading import DATA, corpus_of, loaded, written


def test_text_folder_of_real_books() -> None:
    corpus = loaded(DATA / "txt", "text")
    for item in corpus:
        content = (DATA / "txt" / f"{item.document.document_id}.txt").read_bytes()
        assert item.document.num_words == len(content.decode("latin-1").split())
        assert "\r" not in item.document.text and item.document.num_paragraphs > 90
        assert item.document.problem is None and item.questions == ()
    [book] = loaded(DATA / "txt" / "pg375.txt", "text")
    assert book in corpus


QUESTIONS: list[dict[str, Any]] = [
    {"document_id": "b", "question": "Who?", "references": "Ann", "evidence": [[2, 4], [0, 3]]},
    {"document_id": "a", "question": "Which?", "options": ["x", "y"], "answer_index": 1,
     "question_id": "q/1 ü", "metadata": {"k": 1}, "source": "s"},
    {"document_id": "a", "question": "When?", "references": ["1", "2"], "asked_at": "2024-01-01",
     "question_type": "time", "evidence": [{"start_char": 0, "end_char": 3}]},
    {"document_id": "a", "question": "When?", "evidence": []},
]  # fmt: skip


def test_text_questions_hang_on_their_documents(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one two", encoding="utf-8")
    (tmp_path / "b.txt").write_text("three", encoding="utf-8")
    written(tmp_path / "questions.jsonl", *QUESTIONS)
    [first, second] = loaded(tmp_path, "text")
    which, when, again = first.questions
    assert (which.question_id, which.answer_index, which.references) == ("q/1 ü", 1, ("y",))
    assert json.loads(which.metadata) == {"source": "s", "k": 1}
    assert (when.references, when.asked_at, when.question_type) == (
        ("1", "2"),
        "2024-01-01",
        "time",
    )
    assert (when.evidence[0].start_char, when.evidence[0].end_char) == (0, 3)
    assert (again.references, again.evidence) == ((), ())
    made = [question.question_id for question in (when, again)]
    assert all(re.fullmatch("[0-9a-f]{16}", each) for each in made) and len(set(made)) == 2
    [who] = second.questions
    assert who.references == ("Ann",)
    assert [(s.start_char, s.end_char) for s in who.evidence] == [(0, 4)]


def test_tables_are_the_same_as_jsonl_and_as_parquet(tmp_path: Path) -> None:
    long_id = "x/ y" * 75
    documents: list[dict[str, Any]] = [
        {"document_id": "a", "text": "one\n\ntwo", "title": "A", "metadata": {"year": 1}},
        {"document_id": "b", "text": "three", "title": None, "metadata": None},
        {"document_id": long_id, "text": "long", "title": None, "metadata": None},
        *[{"document_id": None, "text": "made", "title": None, "metadata": None}] * 2,
    ]
    (tmp_path / "lines").mkdir()
    (tmp_path / "parquet").mkdir()
    questions = [{k: v for k, v in row.items() if k != "evidence"} for row in QUESTIONS]
    for name, rows in (("documents", documents), ("questions", questions)):
        written(tmp_path / "lines" / f"{name}.jsonl", *rows)
        listed = [
            {**row, "references": [row["references"]]} if row.get("references") == "Ann" else row
            for row in rows
        ]
        columns = {key: None for row in listed for key in row}
        table = pa.Table.from_pylist([{**columns, **row} for row in listed])
        pq.write_table(table, tmp_path / "parquet" / f"{name}.parquet")
    corpus = loaded(tmp_path / "lines", "tables")
    assert corpus == loaded(tmp_path / "parquet", "tables")
    ids = [item.document.document_id for item in corpus]
    assert ids[:3] == ["a", "b", long_id]
    assert all(re.fullmatch("[0-9a-f]{16}", made) for made in ids[3:]) and ids[3] != ids[4]
    assert [len(item.questions) for item in corpus] == [3, 1, 0, 0, 0]
    assert json.loads(corpus[0].document.metadata) == {"year": 1}
    assert not any(item.document.problem for item in corpus)


CONTENT = "word " * 100_000
QUESTION = {"question": "Q?", "input": "Q?"}
TURN = {"speaker": "A", "role": "user", "content": CONTENT}
HELD: dict[str, dict[str, Any]] = {
    "longbench_v2": {"context": CONTENT, "answer": "A", **{f"choice_{a}": a for a in "ABCD"}},
    "qmsum": {"meeting_transcripts": [TURN]},
    "tables": {"text": CONTENT},
    "longmemeval": {"haystack_sessions": [[TURN]]},
    "records": {"text": CONTENT},
    "ultradomain": {"context": CONTENT},
}


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("kind", HELD)
def test_a_corpus_is_never_held_whole(tmp_path: Path, kind: str) -> None:
    is_list = kind == "longbench_v2"
    with (tmp_path / ("data.json" if is_list else "documents.jsonl")).open("w") as file:
        for number in range(40):
            row = {"document_id": number, "article_id": number, **QUESTION, **HELD[kind]}
            before = "" if not is_list else "," if number else "["
            file.write(
                before + json.dumps(row).replace("word word", f"word{number} word", 1) + "\n"
            )
        file.write("]" if is_list else "")
    tracemalloc.start()
    assert sum(1 for _ in load(corpus_of(tmp_path, kind))) == 40
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 12_000_000  # the file has 20 MB
