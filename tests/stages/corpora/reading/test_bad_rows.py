"""What comes of wrong paths, files and rows: one line that ends the command, or a bad_input row
that says where it is and what to do, and costs no other row, whatever is odd in it."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.core.errors import UsageError
from stages.corpora import load
from tests.support.texts.loading import bad, corpus_of, details, good, loaded, written

QUERY: dict[str, Any] = {"query": "good", "answer": "a", "relevant_text_span": [["0", "1"]]}
MEETING: dict[str, Any] = {
    "topic_list": 7,
    "general_query_list": [{"query": "all", "answer": "a"}],
    "specific_query_list": [QUERY],
    "meeting_transcripts": [{"speaker": "A", "content": "one"}, {"speaker": "B", "content": ""}],
}
LINE: dict[str, Any] = {
    "article_id": "1", "article": "<p>one</p>",
    "questions": [
        {"question": "good", "question_unique_id": "q", "options": ["x", "y"], "gold_label": 2}],
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "name", "words"),
    [
        ("qmsum", "", "no *.jsonl or *.json in this folder"),
        ("qmsum", "empty.dat", "empty.dat: no line or row in it is an object"),
        ("qmsum", "torn.dat", "torn.dat:1: not JSON"),
        ("tables", "", "no documents.jsonl or documents.parquet here"),
        ("tables", "empty.dat", "no documents.jsonl or documents.parquet here"),
    ],
)
def test_a_path_without_the_format_is_refused(
    tmp_path: Path, kind: str, name: str, words: str
) -> None:
    written(tmp_path / "empty.dat")
    written(tmp_path / "torn.dat", '{"a": ', "[1]")
    with pytest.raises(UsageError) as caught:
        loaded(tmp_path / name, kind)
    assert words in str(caught.value)
    with pytest.raises(UsageError, match=r"no: no such file or folder; set corpus\.path="):
        load(corpus_of(tmp_path / "no", kind))  # before a document is asked for


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (None, "no regular file"), (b"%PDF-1.7", "a PDF, not text"), (b"{\\rtf1 x}", "RTF, not"),
        (b"\x28\xb5\x2f\xfd\x04", "compressed by zstd, not text"),
    ],
)  # fmt: skip
def test_what_is_no_text_is_named(tmp_path: Path, content: bytes | None, kind: str) -> None:
    """None: a FIFO, which may never end."""
    (tmp_path / "b.txt").write_text("one")
    for name in ("a.txt", "documents.jsonl", "z.csv"):
        if content is None:
            os.mkfifo(tmp_path / name)
        else:
            (tmp_path / name).write_bytes(content)
    assert details(loaded(tmp_path, "text"))[0].startswith(f"a.txt: {kind}")
    for format_name, name in (("tables", "documents.jsonl"), ("csv", "z.csv")):
        with pytest.raises(UsageError, match=f"{name}: {kind}"):
            loaded(tmp_path, format_name)


@pytest.mark.parametrize(("kind", "row"), [("qmsum", MEETING), ("quality", LINE)])
def test_a_torn_line_is_a_document_of_its_own(
    tmp_path: Path, kind: str, row: dict[str, Any]
) -> None:
    whole, torn = loaded(written(tmp_path / "m.jsonl", row, "[1]", ""), kind)
    assert (whole.document.problem, torn.document.problem) == (None, "bad_input")
    assert torn.document.document_id == "m.jsonl:2" and torn.questions == ()
    assert (torn.document.detail or "").startswith("m.jsonl:2: a list, not an object; ")


# Of a meeting its turns and a query, of an article itself and a question: what is changed, what is
# said of it.
BAD_PARTS: list[tuple[str, str, Any, str]] = [
    ("qmsum", "turns", [{"speaker": "A"}], "meeting_transcripts[0]: no `content`"),
    ("qmsum", "query", "who?", "a string, not an object"),
    ("qmsum", "query", {"query": "q", "answer": ["a"]}, "`answer` is a list, not a string"),
    ("qmsum", "query", {"query": "q", "relevant_text_span": [["0", "2"]]}, "0 to 1; fix it"),
    ("quality", "article", {"article": "<p> </p>"}, "the text has no words"),
    ("quality", "article", {"article_id": ["1"]}, "`article_id` is a list"),
    ("quality", "question", {"gold_label": 0}, "`gold_label` 0 is not a number from 1 to 2"),
    ("quality", "question", {"options": None}, "no `options`"),
    ("quality", "question", {"question_unique_id": "q"}, '`question_unique_id` "q" is used twice'),
]


@pytest.mark.parametrize(("kind", "part", "change", "words"), BAD_PARTS)
def test_a_bad_part_costs_only_itself(
    tmp_path: Path, kind: str, part: str, change: Any, words: str
) -> None:
    rows: dict[str, Callable[[], dict[str, Any]]] = {
        "turns": lambda: {**MEETING, "meeting_transcripts": change},
        "query": lambda: {**MEETING, "specific_query_list": [change, QUERY]},
        "article": lambda: {**LINE, **change},
        "question": lambda: {**LINE, "questions": [
            *LINE["questions"], {**LINE["questions"][0], "question_unique_id": "r", **change}]},
    }  # fmt: skip
    [item] = loaded(written(tmp_path / "m.jsonl", rows[part]()), kind)
    assert "good" in good(item.questions) or part == "turns"
    [detail] = [item.document.detail] if item.document.problem else bad(item.questions)
    assert (item.document.problem is None) == (part in ("query", "question"))
    assert detail and detail.startswith("m.jsonl:1: ") and words in detail and len(detail) < 300


def test_evidence_is_within_the_text(tmp_path: Path) -> None:
    question = {"document_id": "a", "question": "good", "evidence": [[0, 3], [1, 2]]}
    spans = ("0-3", [0, 4], [1, 1], [-1, 2], [0.5, 2], [0, 1, 2], {"start_char": 0})
    written(tmp_path / "documents.jsonl", {"document_id": "a", "text": "one"})
    others = ({**question, "evidence": [span]} for span in spans)
    written(tmp_path / "questions.jsonl", question, *others)
    [item] = loaded(tmp_path, "tables")
    assert item.document.problem is None and good(item.questions) == ["good"]
    for line, detail in zip(range(2, 9), bad(item.questions), strict=True):
        assert detail.startswith(f"questions.jsonl:{line}: `evidence` ")
        assert "(0 to 3); fix it" in detail


def test_questions_without_a_document_are_kept_as_bad_rows(tmp_path: Path) -> None:
    written(tmp_path / "documents.jsonl", {"document_id": "a", "text": "one"})
    lost = {"document_id": "z", "question": "lost", "question_id": "l"}
    rows = [lost, "{", {"question": "whose?"}, {**lost, "question_id": "m"}, {"document_id": []}]
    written(tmp_path / "questions.jsonl", *rows)
    corpus = loaded(tmp_path, "tables")
    ids = [item.document.document_id for item in corpus]
    assert ids == ["a", "z", *(f"questions.jsonl:{line}" for line in (2, 3, 5))]
    assert [item.document.problem for item in corpus] == [None, *["bad_input"] * 4]
    assert [q.question_id for q in corpus[1].questions] == ["l", "m"]
    assert [q.question for item in corpus for q in item.questions][2:4] == ["", "whose?"]
    words = 'questions.jsonl:4: no document has the document_id "z"; add it or delete the question'
    assert corpus[1].questions[1].detail == words
    said = ["not JSON (Exp", "no `document_", "`document_id`"]
    assert [bad(item.questions)[0].split(": ", 1)[1][:13] for item in corpus[2:]] == said


def test_bad_and_repeated_documents_keep_the_others(tmp_path: Path) -> None:
    documents: list[Any] = [
        {"document_id": "a", "text": "one"}, {"document_id": "a", "text": "again"},
        {"document_id": "a-2", "text": "its own"}, {"document_id": "n", "text": 5},
        {"document_id": "e", "text": ""}, {"document_id": "m", "text": "x", "metadata": [1]},
        {"document_id": {}, "text": "x"}, {"document_id": "t"}, "{",
    ]  # fmt: skip
    written(tmp_path / "documents.jsonl", *documents)
    asked = ("a", "a-2", "n", "e")
    written(tmp_path / "questions.jsonl", *({"document_id": i, "question": f"{i}?"} for i in asked))
    corpus = loaded(tmp_path, "tables")
    problems = [item.document.problem for item in corpus]
    assert problems == [None, "bad_input", None, *["bad_input"] * 6]
    copy = corpus[1]
    repeated = 'documents.jsonl:2: `document_id` "a" is used twice, first in documents.jsonl:1; '
    assert (copy.document.detail or "").startswith(repeated)
    assert copy.document.document_id == "documents.jsonl:2" and copy.questions == ()
    questions = {item.document.document_id: good(item.questions) for item in corpus}
    assert [questions[asker] for asker in asked] == [[f"{asker}?"] for asker in asked]


def test_lone_surrogates_become_replacement_characters(tmp_path: Path) -> None:
    """In a row's values, and in the name of a file, which need not be UTF-8."""
    row = r'{"document_id": "\udc00", "text": "a \ud800 b \ud83d\ude00", "title": "\ud800x", '
    written(tmp_path / "documents.jsonl", row + r'"metadata": "{\"k\": \"\\ud800\"}"}')
    [item] = loaded(tmp_path, "tables")
    assert item.document.text == "a \ufffd b \U0001f600"
    assert (item.document.document_id, item.document.title) == ("\ufffd", "\ufffdx")
    assert item.document.metadata == '{"k": "\ufffd"}'
    (tmp_path / os.fsdecode(b"x\xff.txt")).write_text("one")
    assert loaded(tmp_path, "text")[-1].document.document_id == "x\ufffd"


def test_ids_are_kept_as_they_are(tmp_path: Path) -> None:
    ids = ["../x", "a\0b", "i" * 10_000, "a\r\nb", "{{ x }} ${y}", " ", "\u202eabc"]
    written(tmp_path / "documents.jsonl", *({"document_id": i, "text": i + "."} for i in ids))
    questions = ({"document_id": i, "question_id": i, "question": "Who?"} for i in ids)
    written(tmp_path / "questions.jsonl", *questions)
    corpus = loaded(tmp_path, "tables")
    assert [item.document.document_id for item in corpus if not item.document.problem] == ids
    assert [[q.question_id for q in item.questions] for item in corpus] == [[i] for i in ids]


def test_no_document_has_control_characters_c1(tmp_path: Path) -> None:
    text = "it\x92s \x93here\x94\x85 \x80\x81 now"
    row = {"document_id": "a", "text": text}
    written(tmp_path / "documents.jsonl", row)
    (tmp_path / "b.txt").write_text(text, encoding="utf-8")
    (tmp_path / "c.html").write_text("<p>it&#146;s &#147;here&#148;&#133; &#128;&#129; now</p>")
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "a.parquet")
    corpora = [loaded(tmp_path, "tables"), loaded(tmp_path, "text"),
               loaded(tmp_path, "parquet", fields={"question": None})]  # fmt: skip
    texts = [item.document.text for corpus in corpora for item in corpus
             if not item.document.skipped]  # fmt: skip
    assert texts == ["it’s “here”… €\ufffd now"] * 4
