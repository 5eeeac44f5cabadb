"""Rows of one's own: which key holds what, and what is wrong with a row; tables of documents and
questions; and no corpus of rows is ever held whole."""

import json
import re
import tracemalloc
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.core.errors import UsageError
from pipeline.core.rows import Span
from stages.corpora import Loaded, load
from tests.support.texts.loading import bad, corpus_of, details, good, loaded, written

TEXT = "The mill stood by the river."
MADE_ID = re.compile("[0-9a-f]{16}")
FIELDS: dict[str, Any] = {
    "text": "story", "document_id": "book", "title": "name", "question": "q", "question_id": "no",
    "options": ["choices"], "answer_index": "label", "references": "gold",
    "question_type": "kind", "asked_at": "on",
}  # fmt: skip
ROW: dict[str, Any] = {
    "story": TEXT, "book": "b1", "name": "The Mill", "q": "Where?", "no": "q1",
    "choices": ["sea", "river"], "label": 1, "gold": None, "kind": "place", "on": "2024-01-01",
    "extra": 7,
}  # fmt: skip


def read(folder: Path, *rows: Any, **changed: Any) -> list[Loaded]:
    fields = {**FIELDS, **changed.pop("fields", {})}
    return loaded(written(folder / "mine.jsonl", *rows), "records", fields=fields, **changed)


def test_field_names_say_what_is_what(tmp_path: Path) -> None:
    rows = [ROW, {**ROW, "no": "q2", "label": None, "gold": "by it"}, {"story": "B.", "q": "Who?"}]
    first, second = read(tmp_path, *rows)
    document = first.document
    assert (document.document_id, document.title, document.text) == ("b1", "The Mill", TEXT)
    assert (document.num_words, document.num_paragraphs) == (6, 1)
    where, again = first.questions
    assert (where.question_id, where.question, where.question_type) == ("q1", "Where?", "place")
    assert (where.options, where.answer_index, where.references) == (
        ("sea", "river"), 1, ("river",),
    )  # fmt: skip
    assert (where.asked_at, json.loads(where.metadata)) == ("2024-01-01", {"extra": 7})
    assert (again.answer_index, again.references) == (None, ("by it",))
    assert second.document.text == "B." and good(second.questions) == ["Who?"]
    [alone] = read(tmp_path, ROW, fields={"question": None})
    assert alone.questions == ()
    assert json.loads(alone.document.metadata) == {"extra": 7, "q": "Where?"}


def test_a_key_for_each_option(tmp_path: Path) -> None:
    fields = {"text": "story", "question": "q", "options": ["a", "b"], "answer_index": "label"}
    table = '\ufeffstory , q,a,b,label\r\n"One,\ntwo.",Who?,Ann,Bob, B \r\nOne.,Who?,Ann,,\r\n'
    (tmp_path / "a.csv").write_text(table, encoding="utf-8", newline="")
    [whole, gap] = loaded(tmp_path / "a.csv", "records", fields=fields)
    [question] = whole.questions
    assert whole.document.text == "One,\ntwo."
    assert (question.options, question.answer_index) == (("Ann", "Bob"), 1)
    assert bad(gap.questions) == ["a.csv:4: 1 of 2 options; add or delete them"]


def test_each_kind_of_file_has_a_config_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text,question\none,Who?\n")
    written(tmp_path / "a.jsonl", {"text": "two", "question": "Who?"})
    for name, texts in (("csv", ["one"]), ("jsonl", ["two"]), ("records", ["one", "two"])):
        assert [item.document.text for item in loaded(tmp_path, name)] == texts
    with pytest.raises(UsageError, match=r"no \*\.parquet in this folder"):
        loaded(tmp_path, "parquet")


@pytest.mark.parametrize(
    ("first_option", "label", "right"),
    [
        (0, 0, 0), (0, 1, 1), (1, 1, 0), (1, 2, 1), (0, "0", 0), (1, "2", 1), (1, " 1 ", 0),
        (0, 1.0, 1), (0, "1.0", 1), (0, "a", 0), (1, "B", 1), (0, " b", 1), (0, None, None),
    ],
)  # fmt: skip
def test_the_right_option(tmp_path: Path, first_option: int, label: Any, right: int | None) -> None:
    [item] = read(tmp_path, {**ROW, "label": label}, first_option=first_option)
    [question] = item.questions
    assert (question.answer_index, question.problem) == (right, None)


# id: what is changed in the second row, what is said of it; "" if nothing is wrong.
QUESTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "label past the end": ({"label": 2}, "`label` 2 is not a number from 0 to 1"),
    "label a letter past the end": ({"label": "C"}, '`label` "C" is no letter of AB'),
    "options with a gap": ({"choices": ["sea", None]}, "`choices` is not a list of strings"),
    "references an object": ({"gold": {"text": "a"}}, "`gold` is not a list of strings"),
    "question blank": ({"q": "\n\t"}, "`q` is empty; write the question or delete it"),
    "question like a template": ({"q": "{{ x }} <5> Page [3] {% raw %} <|im_start|>"}, ""),
    "question id twice": ({"no": "q1"}, '"q1" is used twice, first in mine.jsonl:1; give this'),
    "date a number": ({"on": 20240101}, "`on` is a number, not a string"),
    "metadata no object": ({"metadata": "[1]"}, "`metadata` is no JSON object"),
}


@pytest.mark.parametrize("case", QUESTIONS)
def test_a_question_of_every_kind_costs_only_itself(tmp_path: Path, case: str) -> None:
    change, words = QUESTIONS[case]
    last = {**ROW, "no": "q3", "q": "Last?"}
    [item] = read(tmp_path, ROW, {**ROW, "no": "q2", **change}, last)
    assert item.document.problem is None and item.document.text == TEXT
    assert len(item.questions) == 3 and len(good(item.questions)) == 3 - bool(words)
    for detail in bad(item.questions):
        assert detail.startswith("mine.jsonl:2: ") and words in detail and len(detail) < 200


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"text": "txt"}, r"corpus\.fields\.text=txt: not in mine\.jsonl, which has story, book"),
        ({"references": "in.txt"}, r"\.references=in\.txt: not in .*, extra, in$"),
        ({"document_id": "x"}, r"corpus\.fields\.document_id=x: not in "),
    ],
)
def test_a_misspelt_field_is_one_error(tmp_path: Path, fields: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        read(tmp_path, "[1]", {**ROW, "in": [{"text": "a", "start": 1}]}, fields=fields)


NAN = float("nan")
# Rows as datasets have them: the path to the references, these, and what is left for metadata.
NESTED: dict[str, tuple[dict[str, Any], str, dict[str, Any]]] = {
    "SQuAD": ({"answers": {"text": ["He", "he"], "answer_start": [3, 3]}},
              "answers.text", {"answers": {"answer_start": [3, 3]}}),
    "a list of objects": ({"answers": [{"text": "He", "start": 3}, {"text": "he", "start": 3}]},
                          "answers.text", {"answers": [{"start": 3}, {"start": 3}]}),
    "a list of objects with lists": ({"notes": [{"a": {"spans": ["He"]}}, {"a": {"spans": []}},
                                                {"a": {"spans": ["he"]}}, {"a": None}]},
                                     "notes.a.spans", {"notes": [{"a": None}]}),
    "objects without it": ({"answers": [{"text": "He"}, {"text": None}, {}, {"text": "he"}]},
                           "answers.text", {}),
    "a key with a dot beside": ({"answers": {"text": ["x"]}, "answers.text": ["He", "he"]},
                                "answers.text", {"answers": {"text": ["x"]}}),
}  # fmt: skip


@pytest.mark.parametrize("case", NESTED)
def test_a_path_of_keys_leads_to_a_field(tmp_path: Path, case: str) -> None:
    more, path, left = NESTED[case]
    rows = [{"text": TEXT, "question": "Who?", **more}, {"text": TEXT, "question": "Which?"}]
    written(tmp_path / "rows.jsonl", *rows)
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "rows.parquet")
    for file in tmp_path.iterdir():
        [item] = loaded(file, "records", fields={"references": path})
        assert [question.references for question in item.questions] == [("He", "he"), ()]
        assert details([item]) == []
        if file.suffix == ".jsonl":  # in Parquet all objects have all keys
            assert json.loads(item.questions[0].metadata) == left


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        (1893, ("1893",)), (1893.0, ("1893",)), (-0.5, ("-0.5",)), (True, ("true",)),
        (False, ("false",)), (0, ("0",)), ([1, "one", 1.5, True], ("1", "one", "1.5", "true")),
        (None, ()), ([], ()), (date(1893, 3, 9), ("1893-03-09",)), (Decimal("1.10"), ("1.10",)),
        (NAN, ()),
    ],
)  # fmt: skip
def test_numbers_and_booleans_are_references_and_nan_is_null(
    tmp_path: Path, value: Any, texts: tuple[str, ...]
) -> None:
    """In Parquet and in JSON, which Python writes with NaN. pandas has NaN where a table of numbers
    or labels has a gap."""
    row = {"text": TEXT, "question": "When?", "references": value}
    fields = {"references": "references"}
    if not isinstance(value, (date, Decimal)):
        [item] = loaded(written(tmp_path / "rows.jsonl", row), "records", fields=fields)
        assert [question.references for question in item.questions] == [texts]
    if value in (None, []) or not isinstance(value, list):
        gaps = {"kind": NAN, "score": NAN, "vector": [1.0, NAN], "about": {"n": NAN, "m": 1.5}}
        pq.write_table(pa.Table.from_pylist([{**row, **gaps}]), tmp_path / "rows.parquet")
        fields["question_type"] = "kind"
        [item] = loaded(tmp_path / "rows.parquet", "records", fields=fields)
        [question] = item.questions
        assert (question.references, question.question_type) == (texts, None)
        left = {"vector": [1.0, None], "about": {"n": None, "m": 1.5}}
        assert (question.problem, json.loads(question.metadata)) == (None, left)


@pytest.mark.parametrize(
    ("content", "metadata"),
    [  # as Excel writes them; then cells below no name, which are kept by their column
        ('text,question,references,,\n"One, two.",Who?,he,,\n', {}),
        ('"","",text,question,references,"  "\n,,"One, two.",Who?,he,\n', {}),
        ('text,question,references\n"One, two.",Who?,he,,,\n', {}),
        ('text,,question,,references\n"One, two.",x,Who?,y,he\n',
         {"column 2": "x", "column 4": "y"}),
        (',text,question,references\n0,"One, two.",Who?,he\n', {"": "0"}),
    ],
)  # fmt: skip
def test_tables_with_columns_without_a_name(
    tmp_path: Path, content: str, metadata: dict[str, str]
) -> None:
    (tmp_path / "a.csv").write_text(content, encoding="utf-8", newline="")
    [item] = loaded(tmp_path / "a.csv", "records", fields={"references": "references"})
    [question] = item.questions
    assert (item.document.text, question.question) == ("One, two.", "Who?")
    assert (question.references, details([item])) == (("he",), [])
    assert json.loads(question.metadata) == metadata


@pytest.mark.parametrize("folder", ["data", "."])
def test_the_files_of_a_folder_of_hugging_face_are_found(tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir(exist_ok=True)
    (tmp_path / "README.md").write_text("---\nlicense: mit\n---\n")
    for name in ("train-00000-of-00002", "train-00001-of-00002", "test-00000-of-00001-a09b74b3ef"):
        table = pa.table({"text": [name[:11]], "question": ["Who?"]})
        pq.write_table(table, tmp_path / folder / f"{name}.parquet")
    train, test = ["train-00000", "train-00001"], ["test-00000-"]
    for split, texts in ((None, [*test, *train]), ("train", train), ("test", test)):
        corpus = loaded(tmp_path, "parquet", split=split)
        assert [item.document.text for item in corpus] == texts
    file = f"{folder}/train-00000-of-00002.parquet"
    for name, missing in (("", "dev"), (file, "train")):  # a split is of a folder
        with pytest.raises(UsageError, match=r"corpus\.split"):
            loaded(tmp_path / name, "parquet", split=missing)


ASKED: list[dict[str, Any]] = [
    {"document_id": "b", "question": "Who?", "references": ["Ann"], "evidence": [[2, 4], [0, 3]]},
    {"document_id": "a", "question": "Which?", "options": ["x", "y"], "answer_index": 1,
     "question_id": "q/1 ü", "metadata": {"k": 1}, "source": "s"},
    {"document_id": "a", "question": "When?", "references": ["1", "2"], "asked_at": "2024-01-01",
     "question_type": "time", "evidence": [[0, 3]]},
    {"document_id": "a", "question": "When?", "evidence": []},
]  # fmt: skip
LONG_ID = "x/ y" * 75
DOCUMENTS: list[dict[str, Any]] = [
    {"document_id": "a", "text": "one\n\ntwo", "title": "A", "metadata": {"year": 1}},
    {"document_id": "b", "text": "three", "title": None, "metadata": None},
    {"document_id": LONG_ID, "text": "long", "title": None, "metadata": None},
    *[{"document_id": None, "text": "made", "title": None, "metadata": None}] * 2,
]


def test_questions_hang_on_their_documents_in_jsonl_and_parquet(tmp_path: Path) -> None:
    lines, tables = tmp_path / "lines", tmp_path / "tables"
    lines.mkdir()
    tables.mkdir()
    for name, rows in (("documents", DOCUMENTS), ("questions", ASKED)):
        written(lines / f"{name}.jsonl", *rows)
        columns = {key: None for row in rows for key in row}
        table = pa.Table.from_pylist([{**columns, **row} for row in rows])
        pq.write_table(table, tables / f"{name}.parquet")
    corpus = loaded(lines, "tables")
    assert corpus == loaded(tables, "tables")
    ids = [item.document.document_id for item in corpus]
    assert ids[:3] == ["a", "b", LONG_ID]
    assert all(MADE_ID.fullmatch(each) for each in ids[3:]) and ids[3] != ids[4]
    assert [len(item.questions) for item in corpus] == [3, 1, 0, 0, 0] and details(corpus) == []
    assert json.loads(corpus[0].document.metadata) == {"year": 1}
    which, when, again = corpus[0].questions
    assert (which.question_id, which.answer_index, which.references) == ("q/1 ü", 1, ("y",))
    assert json.loads(which.metadata) == {"source": "s", "k": 1}
    assert (when.references, when.question_type) == (("1", "2"), "time")
    assert (when.asked_at, when.evidence) == ("2024-01-01", (Span(0, 3),))
    assert (again.references, again.evidence) == ((), ())
    made = [question.question_id for question in (when, again)]
    assert all(MADE_ID.fullmatch(each) for each in made) and made[0] != made[1]
    [who] = corpus[1].questions
    assert (who.references, who.evidence) == (("Ann",), (Span(0, 4),))
    # In JSON there may be one reference, and spans may be objects.
    row = {**ASKED[0], "references": "Ann", "evidence": [{"start_char": 0, "end_char": 3}]}
    written(lines / "questions.jsonl", row)
    [who] = loaded(lines, "tables")[1].questions
    assert (who.references, who.evidence) == (("Ann",), (Span(0, 3),))


CONTENT = "word " * 100_000
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
            row = {"document_id": number, "question": "Q?", "input": "Q?", **HELD[kind]}
            before = "" if not is_list else "," if number else "["
            line = json.dumps(row).replace("word word", f"word{number} word", 1)
            file.write(f"{before}{line}\n")
        file.write("]" if is_list else "")
    tracemalloc.start()
    assert sum(1 for _ in load(corpus_of(tmp_path, kind))) == 40
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 12_000_000  # the file has 20 MB
