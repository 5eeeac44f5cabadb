"""Hostile corpora: what is no file, encodings, bombs, ids, numbers, spans.

Each case is a bad row that costs no other row, a row that is read, or one line."""

import codecs
import gzip
import json
import os
import socket
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from upath import UPath

from pipeline.core.errors import UsageError
from pipeline.core.rows import Document
from stages.corpora import Corpus, Loaded, load
from stages.corpora.reading import opening
from tests.support.texts.loading import asked, corpus_of, details, loaded

pytestmark = pytest.mark.sampled

GOOD = {"document_id": "good", "text": "one two"}
ASKED = {"document_id": "good", "question_id": "q", "question": "Who?"}


def jsonl(*rows: Any) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def refused(path: Path, kind: str, **changed: Any) -> str:
    """The one line that ends the command."""
    with pytest.raises(UsageError) as caught:
        loaded(path, kind, **changed)
    assert str(caught.value).isprintable()
    return str(caught.value)


def texts(folder: Path, kind: str = "text") -> dict[str, str]:
    return {item.document.document_id: item.document.text for item in loaded(folder, kind)}


# What is no regular file.


def fifo(path: Path) -> None:
    os.mkfifo(path)


def bound(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(path))


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def linked_fifo(path: Path) -> None:
    os.mkfifo(path.with_name("pipe"))
    path.symlink_to("pipe")


Make = Callable[[Path], None]
SPECIAL: dict[Make, str] = {
    fifo: "a FIFO",
    bound: "a socket",
    endless: "a device",
    linked_fifo: "a FIFO",
}


@pytest.mark.parametrize("make", SPECIAL)
def test_what_is_no_file_is_one_bad_text(tmp_path: Path, make: Make) -> None:
    make(tmp_path / "a.txt")
    (tmp_path / "b.txt").write_text("one")
    corpus = loaded(tmp_path, "text")
    assert [item.document.text for item in corpus if not item.document.skipped] == ["", "one"]
    assert details(corpus)[0] == f"a.txt: {SPECIAL[make]}, not a file; fix or delete it"


@pytest.mark.parametrize("make", SPECIAL)
@pytest.mark.parametrize("kind", ["text", "jsonl", "csv", "qmsum", "quality", "tables"])
def test_a_path_that_is_no_file_is_one_line(tmp_path: Path, kind: str, make: Make) -> None:
    make(tmp_path / "x")
    assert refused(tmp_path / "x", kind).endswith(
        f"x: {SPECIAL[make]}, not a file; set corpus.path=..."
    )


@pytest.mark.parametrize(
    ("kind", "name"),
    [("jsonl", "a.jsonl"), ("csv", "a.csv"), ("parquet", "a.parquet"),
     ("tables", "documents.jsonl"), ("tables", "documents.parquet"), ("qmsum", "a.json"),
     ("quality", "a.dev"), ("narrativeqa", "documents.csv")],
)  # fmt: skip
@pytest.mark.parametrize("make", [fifo, endless])
def test_rows_of_what_is_no_file_are_one_line(
    tmp_path: Path, kind: str, name: str, make: Make
) -> None:
    make(tmp_path / name)
    assert f"{name}: {SPECIAL[make]}, not a file; " in refused(tmp_path, kind)


@pytest.mark.parametrize("kind", ["text", "tables"])
@pytest.mark.parametrize("make", [fifo, endless, Path.mkdir])
def test_questions_that_are_no_file_are_not_left_out_silently(
    tmp_path: Path, kind: str, make: Make
) -> None:
    (tmp_path / "a.txt").write_text("one")
    (tmp_path / "documents.jsonl").write_bytes(jsonl(GOOD))
    make(tmp_path / "questions.jsonl")
    assert "questions.jsonl: a " in refused(tmp_path, kind)


def test_links_in_a_circle(tmp_path: Path) -> None:
    (tmp_path / "a.txt").symlink_to("b.txt")
    (tmp_path / "b.txt").symlink_to("a.txt")
    (tmp_path / "gone.txt").symlink_to("nowhere")
    (tmp_path / "c.txt").write_text("one")
    (tmp_path / "up").symlink_to(tmp_path)
    corpus = loaded(tmp_path, "text")
    assert [item.document.text for item in corpus] == ["", "", "one", "", ""]
    *files, folder = details(corpus)
    assert ["levels of symbolic links" in d or "No such file" in d for d in files] == [True] * 3
    assert folder.startswith("up: a link to a folder that is read under another name")
    assert "no such file or folder" in refused(tmp_path / "a.txt", "text")


def test_a_folder_with_the_name_of_a_text_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "x.txt").mkdir()
    (tmp_path / "y.txt").write_text("one")
    assert texts(tmp_path) == {"y": "one"}


def test_a_file_that_cannot_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """root reads every file, so opening is refused instead."""
    (tmp_path / "a.txt").write_text("one")
    (tmp_path / "b.txt").write_text("two")
    (tmp_path / "documents.jsonl").write_bytes(jsonl(GOOD))

    real = type(UPath(tmp_path)).open

    def forbidden(file: Any, *mode: Any, **more: Any) -> Any:
        if "b.txt" not in str(file):
            raise PermissionError(13, "Permission denied")
        return real(file, *mode, **more)

    monkeypatch.setattr(type(UPath(tmp_path)), "open", forbidden)
    corpus = loaded(tmp_path, "text")
    assert details(corpus)[0] == "a.txt: Permission denied; fix or delete it"
    assert "documents.jsonl: Permission denied; set corpus.path=" in refused(tmp_path, "tables")


def test_a_file_that_vanishes_after_the_listing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abc":
        (tmp_path / f"{name}.txt").write_text(name)
    real = opening.refuse_special

    def vanishing(file: Any) -> None:
        if file.name == "b.txt":
            file.unlink()
        real(file)

    monkeypatch.setattr(opening, "refuse_special", vanishing)
    corpus = loaded(tmp_path, "text")
    assert [item.document.text for item in corpus] == ["a", "", "c"]
    assert details(corpus) == ["b.txt: No such file or directory; fix or delete it"]


# Bombs.


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit of 100,000 bytes."""
    monkeypatch.setattr(opening, "MOST_BYTES", 100_000)


BOMB = gzip.compress(b"x" * 1_000_000)


@pytest.mark.usefixtures("small")
def test_a_text_that_expands_too_far_is_a_bad_row(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(BOMB)
    (tmp_path / "b.txt").write_bytes(b"x" * 100_001)
    (tmp_path / "c.txt").write_bytes(b"x" * 100_000)
    corpus = loaded(tmp_path, "text")
    assert [len(item.document.text) for item in corpus] == [0, 0, 100_000]
    assert all("MiB in one piece, which no document is; " in detail for detail in details(corpus))
    assert len(details(corpus)) == 2


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("kind", "name", "content"),
    [
        ("jsonl", "a.jsonl.gz", BOMB),
        ("jsonl", "a.jsonl", b'{"text": "' + b"x" * 200_000),
        ("csv", "a.csv.gz", BOMB),
        ("csv", "a.csv", b"text\n" + b"x" * 200_000),
        ("qmsum", "a.json", b"{\n" + b" " * 200_000),
        ("longbench_v2", "a.json", b'["' + b"x" * 300_000 + b'"]'),
        ("longbench_v2", "a.json", b"[" * 300_000),
    ],
)
def test_rows_that_expand_too_far_are_one_line(
    tmp_path: Path, kind: str, name: str, content: bytes
) -> None:
    (tmp_path / name).write_bytes(content)
    said = refused(tmp_path, kind)
    assert "MiB in one piece" in said or "not JSON" in said
    assert name in said


def test_a_list_of_many_entries_is_no_bomb(tmp_path: Path, small: None) -> None:
    rows = [{"id": str(n), "text": f"{n} {'x' * 1000}", "question": "Who?"} for n in range(300)]
    (tmp_path / "a.json").write_text(json.dumps(rows))
    corpus = loaded(tmp_path / "a.json", "jsonl", pattern="*.json", fields={"document_id": "id"})
    assert len(corpus) == 300


@pytest.mark.parametrize("opening_", ["[", '{"a":', '[{"a":'])
@pytest.mark.parametrize("name", ["documents.jsonl", "a.json"])
def test_json_nested_100_000_deep(tmp_path: Path, opening_: str, name: str) -> None:
    good = {"meeting_transcripts": [{"speaker": "A", "content": "one"}]}
    row = GOOD if name == "documents.jsonl" else good
    (tmp_path / name).write_bytes(jsonl(row) + opening_.encode() * 100_000 + b"\n")
    corpus = loaded(tmp_path, "tables" if name == "documents.jsonl" else "qmsum")
    assert [item.document.problem for item in corpus] == [None, "bad_input"]
    assert any(f"{name}:2: not JSON (" in detail for detail in details(corpus))


@pytest.mark.slow
@pytest.mark.parametrize("entry", ["{}", '{{"id": "d", "text": {}}}'])
def test_lists_within_each_other_take_no_memory_by_the_square(tmp_path: Path, entry: str) -> None:
    """64 KB of them took 2.6 GB; as many in a row are no fault."""
    nested, in_a_row = "[" * 2**15 + "]" * 2**15, "[]," * 2**15
    (tmp_path / "a.json").write_text(f"[{entry.format(nested)}]")
    tracemalloc.start()
    said = refused(tmp_path / "a.json", "jsonl", pattern="*.json")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "not JSON: over 10,000 brackets are open at once" in said
    assert peak < 2**27
    row = f'{{"id": "d", "text": "one", "question": "Who?", "more": [{in_a_row}1]}}'
    (tmp_path / "a.json").write_text(f"[{row}]")
    corpus = loaded(tmp_path / "a.json", "jsonl", pattern="*.json", fields={"document_id": "id"})
    assert [item.document.problem for item in corpus] == [None]


# Encodings.

TEXT = "Café\n\nnaïve “quotes”"
READ = {
    "UTF-8 with a mark": codecs.BOM_UTF8 + TEXT.encode(),
    "UTF-16": TEXT.encode("utf-16"),
    "UTF-16, big end first": codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"),
    "UTF-32": TEXT.encode("utf-32"),
    "old Mac": TEXT.replace("\n", "\r").encode(),
    "Windows": TEXT.replace("\n", "\r\n").encode(),
    "UTF-16 in gzip": gzip.compress(TEXT.encode("utf-16")),
}


@pytest.mark.parametrize("case", READ)
def test_a_text_in_every_encoding(tmp_path: Path, case: str) -> None:
    (tmp_path / "a.txt").write_bytes(READ[case])
    assert texts(tmp_path) == {"a": TEXT}


C1 = "it\x92s \x93here\x94\x85 now"
WITHOUT_C1 = "it’s “here”… now"


class WithC1(Corpus):
    """A plugin's, which makes its documents by itself."""

    def load(self) -> Iterator[Loaded]:
        yield Loaded(Document(document_id="a", text=C1), ())


def test_no_document_has_control_characters_c1(tmp_path: Path) -> None:
    row = {"document_id": "a", "text": C1}
    (tmp_path / "documents.jsonl").write_bytes(jsonl(row))
    page = "<p>it&#146;s &#147;here&#148;&#133; now</p>"
    for name, text in {"b.txt": C1, "c.md": C1, "d.html": page}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_text(f"document_id,text\na,{C1}\n", encoding="utf-8")
    section = corpus_of(tmp_path, "tables").model_dump(mode="json")
    shared = {key: section[key] for key in ("format", "name", "paragraphs", "family", "seed")}
    corpora = [
        *(loaded(tmp_path, kind) for kind in ("tables", "text")),
        *(loaded(tmp_path, kind, fields={"question": None}) for kind in ("csv", "parquet")),
        [*load(WithC1.model_validate(shared))],
    ]
    found = [[item.document.text for item in corpus if not item.document.skipped]
             for corpus in corpora]  # fmt: skip
    assert found == [[WITHOUT_C1] * num for num in (1, 3, 1, 1, 1)]


NAMED = {
    "PDF": (b"%PDF-1.7\n...", "a PDF, not text; convert it to text"),
    "docx": (b"PK\x03\x04...", "a zip archive, or a .docx or .epub, not text; convert it"),
    "doc": (b"\xd0\xcf\x11\xe0\xa1\xb1", "an old Word file, not text"),
    "RTF": (b"{\\rtf1\\ansi one}", "RTF, not text; convert it to text"),
    "bzip2": (b"BZh91AY&SY", "compressed by bzip2, not text"),
    "xz": (b"\xfd7zXZ\0", "compressed by xz, not text"),
    "zstd": (b"\x28\xb5\x2f\xfd\x04", "compressed by zstd, not text"),
}


@pytest.mark.parametrize("case", NAMED)
@pytest.mark.parametrize("is_packed", [False, True])
def test_what_is_no_text_is_named(tmp_path: Path, case: str, is_packed: bool) -> None:
    content, says = NAMED[case]
    (tmp_path / "a.txt").write_bytes(gzip.compress(content) if is_packed else content)
    (tmp_path / "documents.jsonl").write_bytes(content)
    assert f"no document in it can be read: a.txt: {says}" in refused(tmp_path, "text")
    (tmp_path / "b.txt").write_text("one")
    assert details(loaded(tmp_path, "text"))[0].startswith(f"a.txt: {says}")
    assert f"documents.jsonl: {says}" in refused(tmp_path, "tables")


ROWS = '{"document_id": "good", "text": "Café"}\n{"document_id": "b", "text": "two"}\n'
TABLE = "document_id,text,question\ngood,Café,Who?\nb,two,Why?\n"
ENCODED = {
    "UTF-8 with a mark": "utf-8-sig",
    "UTF-16": "utf-16",
    "UTF-32": "utf-32",
}


@pytest.mark.parametrize("encoding", ENCODED.values(), ids=ENCODED)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("kind", ["tables", "csv"])
def test_rows_in_every_encoding(tmp_path: Path, encoding: str, line_end: str, kind: str) -> None:
    name, text = {"tables": ("documents.jsonl", ROWS), "csv": ("a.csv", TABLE)}[kind]
    (tmp_path / name).write_bytes(text.replace("\n", line_end).encode(encoding))
    fields = {} if kind == "tables" else {"fields": {"document_id": "document_id"}}
    corpus = loaded(tmp_path, kind, **fields)
    assert [i.document.text for i in corpus if not i.document.problem] == ["Café", "two"]


@pytest.mark.parametrize("sign", [";", "\t", "|", ","])
def test_a_csv_with_another_separator(tmp_path: Path, sign: str) -> None:
    head = ["document_id", "text", "question"]
    cells = [head, ["a", f'"one{sign} two"', "Who?"], ["b", '"a ""b"""', "Why?"]]
    (tmp_path / "a.csv").write_text("\n".join(sign.join(row) for row in cells))
    corpus = loaded(tmp_path, "csv", fields={"document_id": "document_id"})
    assert [item.document.text for item in corpus] == [f"one{sign} two", 'a "b"']


def test_damaged_utf_16_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "documents.jsonl").write_bytes(codecs.BOM_UTF16_LE + b"\x00\xd8{\0}\0")
    assert "documents.jsonl: damaged UTF-16 (" in refused(tmp_path, "tables")


def test_gzip_damaged_within_costs_the_rest(tmp_path: Path) -> None:
    rows = jsonl(
        *({"document_id": str(n), "text": f"{n} {os.urandom(99).hex()}"} for n in range(2000))
    )
    packed = bytearray(gzip.compress(rows))
    packed[len(packed) // 2 : len(packed) // 2 + 40] = b"\xff" * 40
    (tmp_path / "documents.jsonl").write_bytes(packed)
    corpus = loaded(tmp_path, "tables")
    assert corpus[0].document.problem is None and corpus[-1].document.problem == "bad_input"


# Ids: stored as they are, never a place in the file system.

IDS = {
    "a parent": "../x",
    "an absolute path": "/etc/passwd",
    "a NUL": "a\0b",
    "10,000 characters": "i" * 10_000,
    "quotes": "'; drop table documents; --\"",
    "line breaks": "a\r\nb",
    "an emoji": "👩‍👩‍👧",
    "right to left": "\u202eabc",
    "a blank": " ",
    "a wildcard": "*?[a]",
    "a tilde": "~root",
    "SQL": "${x} {{ y }} %s",
    "one of Windows": "CON",
    "zero width": "a\u200bb",
}


@pytest.mark.parametrize("given", IDS.values(), ids=IDS)
def test_ids_are_kept_as_they_are(tmp_path: Path, given: str) -> None:
    (tmp_path / "documents.jsonl").write_bytes(jsonl({**GOOD, "document_id": given}))
    (tmp_path / "questions.jsonl").write_bytes(
        jsonl({**ASKED, "document_id": given, "question_id": given})
    )
    [item] = loaded(tmp_path, "tables")
    assert item.document.document_id == given and item.document.problem is None
    assert [q.question_id for q in item.questions] == [given]


def test_ids_that_look_alike_stay_apart(tmp_path: Path) -> None:
    twins = ["caf\u00e9", "cafe", "CAF\u00c9", "caf\u00e9 ", "\uff43af\u00e9"]
    (tmp_path / "documents.jsonl").write_bytes(
        jsonl(*({"document_id": name, "text": f"text {n}"} for n, name in enumerate(twins)))
    )
    assert texts(tmp_path, "tables") == {name: f"text {n}" for n, name in enumerate(twins)}


def test_names_of_files_with_control_characters(tmp_path: Path) -> None:
    (tmp_path / "a\nb\x1b[2J.txt").write_text("one")
    (tmp_path / "c\td.txt").write_text(" ")
    corpus = loaded(tmp_path, "text")
    assert [item.document.document_id for item in corpus] == ["a\nb\x1b[2J", "c\td"]
    (tmp_path / "e\nf").mkdir()
    assert "e\\nf: no .txt" in refused(tmp_path / "e\nf", "text")


BAD_DOCUMENTS: dict[str, tuple[Any, str]] = {
    "id true": ({"document_id": True, "text": "x"}, "`document_id` is a boolean"),
    "id a list": ({"document_id": ["a"], "text": "x"}, "`document_id` is a list"),
    "id an object": ({"document_id": {}, "text": "x"}, "`document_id` is an object"),
    "text a number": ({"document_id": "a", "text": 7}, "`text` is a number, not a string"),
    "text true": ({"document_id": "a", "text": True}, "`text` is a boolean"),
    "text an object": ({"document_id": "a", "text": {"x": 1}}, "`text` is an object"),
    "text null": ({"document_id": "a", "text": None}, "no `text`; add it"),
    "text blank": ({"document_id": "a", "text": "\u3000 \n"}, "the text has no words"),
    "title a list": ({"document_id": "a", "text": "x", "title": []}, "`title` is a list"),
    "metadata a list": ({"document_id": "a", "text": "x", "metadata": []}, "`metadata` is no JSON"),
    "metadata torn": ({"document_id": "a", "text": "x", "metadata": "{"}, "`metadata` is no JSON"),
    "the same id": ({"document_id": "good", "text": "x"}, '`document_id` "good" is used twice'),
    "nothing": ({}, "no `text`; add it"),
    "a number": (7, "a number, not an object"),
    "a string": ("x", "a string, not an object"),
    "null": (None, "null, not an object"),
}


@pytest.mark.parametrize("case", BAD_DOCUMENTS)
def test_a_bad_document_costs_no_other(tmp_path: Path, case: str) -> None:
    row, says = BAD_DOCUMENTS[case]
    (tmp_path / "documents.jsonl").write_bytes(jsonl(GOOD, row, {**GOOD, "document_id": "last"}))
    corpus = loaded(tmp_path, "tables")
    assert [item.document.problem for item in corpus] == [None, "bad_input", None]
    [detail] = details(corpus)
    assert detail.startswith(f"documents.jsonl:2: {says}")


BAD_QUESTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "index past the end": ({"options": ["a"], "answer_index": 1}, "`answer_index` 1 is not a"),
    "index below 0": ({"options": ["a"], "answer_index": -1}, "`answer_index` -1 is not a"),
    "index a letter": (
        {"options": ["a"], "answer_index": "B"},
        '`answer_index` "B" is no letter of',
    ),
    "index true": ({"options": ["a", "b"], "answer_index": True}, "`answer_index` true is not a"),
    "index huge": ({"options": ["a"], "answer_index": 10**30}, "`answer_index` 1000"),
    "index a fraction": ({"options": ["a"], "answer_index": 0.5}, "`answer_index` 0.5 is not"),
    "index without options": ({"answer_index": 0}, "`answer_index` 0 is not possible without"),
    "options an object": ({"options": {"A": "a"}}, "`options` is not a list of strings"),
    "options of numbers": ({"options": [1, 2]}, "`options` is not a list of strings"),
    "options of null": ({"options": [None]}, "`options` is not a list of strings"),
    "references an object": ({"references": {}}, "`references` is not a list of strings"),
    "references nested": ({"references": [["a"]]}, "`references` is not a list of strings"),
    "question null": ({"question": None}, "no `question`; add it"),
    "question a list": ({"question": ["Who?"]}, "`question` is a list, not a string"),
    "question blank": ({"question": "\u3000\n"}, "`question` is empty"),
    "date a number": ({"asked_at": 20230501}, "`asked_at` is a number, not a string"),
    "type a list": ({"question_type": []}, "`question_type` is a list, not a string"),
    "span a string": ({"evidence": ["0-3"]}, '`evidence` "0-3" is no start and end'),
    "span empty": ({"evidence": [[2, 2]]}, "`evidence` [2, 2] is no start and end"),
    "span huge": ({"evidence": [[0, 10**30]]}, "`evidence` [0, 1000"),
    "span of booleans": ({"evidence": [[False, True]]}, "`evidence` [false, true] is no start"),
    "span of null": ({"evidence": [None]}, "`evidence` null is no start and end"),
    "span without an end": ({"evidence": [{"start_char": 0}]}, '`evidence` {"start_char": 0} is'),
    "evidence an object": ({"evidence": {}}, "`evidence` is an object, not a list"),
    "the same id": ({"question_id": "first"}, '`question_id` "first" is used twice'),
    "id a list": ({"question_id": [1]}, "`question_id` is a list"),
    "metadata a number": ({"metadata": 1}, "`metadata` is no JSON object"),
}


@pytest.mark.parametrize("case", BAD_QUESTIONS)
def test_a_bad_question_costs_no_other(tmp_path: Path, case: str) -> None:
    changed, says = BAD_QUESTIONS[case]
    (tmp_path / "documents.jsonl").write_bytes(jsonl(GOOD))
    rows = (
        {**ASKED, "question_id": "first"},
        {**ASKED, **changed},
        {**ASKED, "question_id": "last"},
    )
    (tmp_path / "questions.jsonl").write_bytes(jsonl(*rows))
    corpus = loaded(tmp_path, "tables")
    assert [q.problem for q in asked(corpus)] == [None, "bad_input", None]
    [detail] = details(corpus)
    assert detail.startswith(f"questions.jsonl:2: {says}")


def test_what_is_twice_without_ids_is_kept_twice(tmp_path: Path) -> None:
    text, question = {"text": "one"}, {"document_id": "good", "question": "Who?"}
    (tmp_path / "documents.jsonl").write_bytes(jsonl(GOOD, text, text))
    (tmp_path / "questions.jsonl").write_bytes(jsonl(question, question))
    corpus = loaded(tmp_path, "tables")
    assert [item.document.text for item in corpus] == ["one two", "one", "one"]
    assert len(asked(corpus)) == 2 and not details(corpus)


EMPTY = [b"", b"\n\n", b" ", b"\xef\xbb\xbf", b"\r", b"null", b"[]", b"{"]


@pytest.mark.parametrize("content", EMPTY)
def test_a_table_of_nothing_is_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "documents.jsonl").write_bytes(content)
    assert "documents.jsonl: no line or row in it is an object; " in refused(tmp_path, "tables")


def test_a_single_line_of_20_million_characters(tmp_path: Path) -> None:
    (tmp_path / "documents.jsonl").write_bytes(jsonl({**GOOD, "text": "word " * 4_000_000}))
    [item] = loaded(tmp_path, "tables")
    assert item.document.num_words == 4_000_000
