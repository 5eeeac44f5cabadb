"""What comes of input that is wrong: a bad_input row that says where it is and what to do.

A wrong path ends the command; a wrong row costs no other row.
"""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from pipeline.core.errors import UsageError
from stages.corpora import load
from tests.support.texts.loading import bad, corpus_of, good, loaded, written

pytestmark = pytest.mark.sampled

QUERY: dict[str, Any] = {"query": "good", "answer": "a", "relevant_text_span": [["0", "1"]]}
MEETING: dict[str, Any] = {
    "topic_list": 7,
    "general_query_list": [{"query": "all", "answer": "a"}],
    "specific_query_list": [QUERY],
    "meeting_transcripts": [{"speaker": "A", "content": "one"}, {"speaker": "B", "content": ""}],
}
LINE: dict[str, Any] = {
    "article_id": "1",
    "article": "<p>one</p>",
    "questions": [
        {"question": "good", "question_unique_id": "q", "options": ["x", "y"], "gold_label": 2}
    ],
}


def test_a_missing_path_is_refused_at_once(tmp_path: Path) -> None:
    for kind in ("qmsum", "quality", "text", "tables"):
        with pytest.raises(UsageError, match=r"no: no such file or folder; set corpus\.path="):
            load(corpus_of(tmp_path / "no", kind))


def test_a_path_without_the_format_is_refused(tmp_path: Path) -> None:
    empty = written(tmp_path / "empty.dat")
    torn = written(tmp_path / "torn.dat", '{"a": ', "[1]")
    for kind, path, words in (
        ("qmsum", tmp_path, r"no \*\.jsonl or \*\.json in this folder"),
        ("qmsum", empty, "empty.dat: no line or row in it is an object"),
        ("qmsum", torn, "torn.dat:1: not JSON"),
        ("quality", empty, "empty.dat: no line or row in it is an object"),
        (
            "text",
            tmp_path,
            r"no \.txt .*; files of other kinds: 2 \(empty\.dat, torn",
        ),
        ("tables", tmp_path, r"no documents\.jsonl or documents\.parquet here"),
        ("tables", empty, r"no documents\.jsonl or documents\.parquet here"),
    ):
        with pytest.raises(UsageError, match=words):
            loaded(path, kind)


def test_tables_refuses_empty_double_and_false_files(tmp_path: Path) -> None:
    (tmp_path / "documents.parquet").write_bytes(b"PAR1 not at all")
    with pytest.raises(UsageError, match=r"documents\.parquet"):
        loaded(tmp_path, "tables")
    written(tmp_path / "documents.jsonl", {"text": "one"})
    with pytest.raises(UsageError, match="keep one"):
        loaded(tmp_path, "tables")
    (tmp_path / "documents.parquet").unlink()
    written(tmp_path / "questions.jsonl", "", "  ")
    with pytest.raises(UsageError, match=r"questions\.jsonl: no line or row"):
        loaded(tmp_path, "tables")


@pytest.mark.parametrize("kind", ["quality", "text", "tables"])
def test_cleaning_of_tags_is_for_qmsum(tmp_path: Path, kind: str) -> None:
    with pytest.raises(ValidationError, match=r"clean\n.*Extra inputs are not permitted"):
        loaded(tmp_path, kind, clean="tags")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"meeting_transcripts": [', "m.jsonl:2: not JSON (Expecting value, column"),
        ("[1]", "m.jsonl:2: a list, not an object; fix or delete the line"),
        ('{"a": NaN}', "m.jsonl:2: not JSON (NaN is no JSON number)"),
        ('{"a": 1e999}', "m.jsonl:2: not JSON (1e999 is no JSON number)"),
        ("[" * 100_000, "m.jsonl:2: not JSON (maximum recursion"),
        ("\0\0\0\0\0", "m.jsonl:2: not JSON ("),
    ],
)
def test_a_torn_line_is_a_document_of_its_own(tmp_path: Path, line: str, words: str) -> None:
    for kind, row in (("qmsum", MEETING), ("quality", LINE)):
        corpus = loaded(written(tmp_path / "m.jsonl", row, line, ""), kind)
        assert [item.document.problem for item in corpus] == [None, "bad_input"]
        assert corpus[1].document.document_id == "m.jsonl:2" and corpus[1].questions == ()
        assert (corpus[1].document.detail or "").startswith(words)


def test_torn_lines_of_files_with_one_stem_stay_apart(tmp_path: Path) -> None:
    for end in ("dev", "test"):
        written(tmp_path / f"QuALITY.{end}", {**LINE, "article_id": end, "questions": []}, "{")
    ids = [item.document.document_id for item in loaded(tmp_path, "quality")]
    assert ids == ["dev", "QuALITY.dev:2", "test", "QuALITY.test:2"]


@pytest.mark.parametrize(
    ("turns", "words"),
    [
        (None, "`meeting_transcripts` is null, not a list"),
        ("A: one", "`meeting_transcripts` is a string, not a list"),
        ([], "the text has no words"),
        ([{"speaker": "A"}], "meeting_transcripts[0]: no `content`"),
        ([{"speaker": "A", "content": 1}], "[0]: `content` is a number, not a string"),
        ([MEETING["meeting_transcripts"][0], "B: two"], "[1]: a string, not an object"),
    ],
)
def test_a_bad_meeting_keeps_its_questions(tmp_path: Path, turns: Any, words: str) -> None:
    meeting = {**MEETING, "meeting_transcripts": turns, "specific_query_list": []}
    [item] = loaded(written(tmp_path / "m.jsonl", meeting), "qmsum")
    assert words in (item.document.detail or "") and "m.jsonl:1: " in (item.document.detail or "")
    assert good(item.questions) == ["all"] and item.document.text == ""


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"query": 5}, "`query` is a number"),
        ({"query": " "}, "`query` is empty"),
        ({"answer": "a"}, "no `query`"),
        ("who?", "a string, not an object"),
        ({"query": "q", "answer": ["a"]}, "`answer` is a list, not a string"),
        ({"query": "q", "relevant_text_span": "0-1"}, "`relevant_text_span` is a string"),
        ({"query": "q", "relevant_text_span": [["0", "2"]]}, "0 to 1; fix it"),
        ({"query": "q", "relevant_text_span": [["1", "0"]]}, '["1", "0"] is no pair'),
        ({"query": "q", "relevant_text_span": [["x", "1"]]}, "is no pair"),
        ({"query": "q", "relevant_text_span": [["-1", "1"]]}, "is no pair"),
        ({"query": "q", "relevant_text_span": [[True, 1]]}, "is no pair"),
        ({"query": "q", "relevant_text_span": [["9" * 5000, "1"]]}, "9... is no pair"),
        ({"query": "q", "relevant_text_span": ["1"]}, "is no pair"),
    ],
)
def test_a_bad_query_costs_only_itself(tmp_path: Path, query: Any, words: str) -> None:
    meeting = {**MEETING, "specific_query_list": [query, QUERY]}
    [item] = loaded(written(tmp_path / "m.jsonl", meeting), "qmsum")
    assert item.document.problem is None and good(item.questions) == ["all", "good"]
    [detail] = bad(item.questions)
    assert detail.startswith("m.jsonl:1: specific_query_list[0]: ") and words in detail
    assert len(detail) < 300


def test_a_list_of_queries_that_is_none_is_one_bad_question(tmp_path: Path) -> None:
    meeting = {**MEETING, "specific_query_list": 7}
    [item] = loaded(written(tmp_path / "m.jsonl", meeting), "qmsum")
    assert bad(item.questions) == ["m.jsonl:1: specific_query_list: a number, not a list; fix it"]
    assert good(item.questions) == ["all"] and item.document.problem is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"article": 5}, "`article` is a number"),
        ({"article": "<p> </p>"}, "the text has no words"),
        ({"article": None}, "no `article`"),
        ({"article_id": None}, "no `article_id`"),
        ({"article_id": ["1"]}, "`article_id` is a list"),
        ({"article_id": True}, "`article_id` is a boolean"),
    ],
)
def test_a_bad_article_keeps_its_questions(tmp_path: Path, change: Any, words: str) -> None:
    [item] = loaded(written(tmp_path / "q.dev", {**LINE, **change}), "quality")
    assert (item.document.detail or "").startswith("q.dev:1: ")
    assert words in (item.document.detail or "") and good(item.questions) == ["good"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"gold_label": 0}, "`gold_label` 0 is not a number from 1 to 2"),
        ({"gold_label": 3}, "`gold_label` 3 is not a number from 1 to 2"),
        ({"gold_label": "x"}, '`gold_label` "x" is not'),
        ({"gold_label": True}, "`gold_label` true is not"),
        ({"gold_label": 1.5}, "`gold_label` 1.5 is not"),
        ({"options": "x, y"}, "`options` is not a list of strings"),
        ({"options": ["x", 2]}, "`options` is not a list of strings"),
        ({"options": None}, "no `options`"),
        ({"question": None}, "no `question`"),
        ({"question_unique_id": "q"}, '`question_unique_id` "q" is used twice'),
        ({"question_unique_id": {}}, "`question_unique_id` is an object"),
    ],
)
def test_a_bad_quality_question_costs_only_itself(tmp_path: Path, change: Any, words: str) -> None:
    wrong = {**LINE["questions"][0], "question_unique_id": "r", **change}
    later = {**LINE["questions"][0], "question_unique_id": "q-2", "question": "later"}
    line = {**LINE, "questions": [*LINE["questions"], wrong, later]}
    [item] = loaded(written(tmp_path / "q.dev", line), "quality")
    assert good(item.questions) == ["good", "later"] and item.document.problem is None
    [detail] = bad(item.questions)
    assert detail.startswith("q.dev:1: questions[1]: ") and words in detail
