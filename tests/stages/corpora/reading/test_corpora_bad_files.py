"""Broken files of every format in one table: what is written, and what comes of it."""

import gzip
import io
import json
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.core.errors import UsageError
from tests.support.texts.loading import asked, details, loaded

pytestmark = pytest.mark.sampled


def lines(*rows: Any) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def parquet(**columns: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    return file.getvalue()


@dataclass(frozen=True)
class Broken:
    """`documents`: id and text of each, text empty where it is bad; `asked`: good questions."""

    corpus: str
    files: dict[str, bytes]
    documents: list[tuple[str, str]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)  # how each detail begins
    refused: str = ""  # a UsageError instead


QUALITY: dict[str, Any] = {
    "article_id": "1", "article": "<p>one</p>",
    "questions": [{"question": "Which?", "question_unique_id": "q", "options": ["x", "y"],
                   "gold_label": 1}],
}  # fmt: skip
MEETING: dict[str, Any] = {
    "meeting_transcripts": [{"speaker": "A", "content": "one"}],
    "general_query_list": [{"query": "What?", "answer": "x"}], "specific_query_list": [],
}  # fmt: skip
ASKED = {"document_id": "a", "question": "Who?"}
TEXT = {"document_id": "a", "text": "one two"}
SPAN = "questions.jsonl:1: `evidence` "


def tables(document: Any = TEXT, **question: Any) -> dict[str, bytes]:
    return {"documents.jsonl": lines(document), "questions.jsonl": lines({**ASKED, **question})}


def quality(article: str) -> dict[str, bytes]:
    return {"a.dev": lines({**QUALITY, "article": article})}


BROKEN: dict[str, Broken] = {
    # A folder of texts: whatever the bytes are, they are a text or one bad row.
    "text: Latin-1": Broken("text", {"a.txt": b"caf\xe9"}, [("a", "café")]),
    "text: invalid UTF-8": Broken("text", {"a.txt": b"caf\xe9 \xff b"}, [("a", "café ÿ b")]),
    "text: UTF-16": Broken("text", {"a.txt": "café".encode("utf-16")}, [("a", "café")]),
    "text: UTF-16 with a byte too few": Broken(
        "text", {"a.txt": b"\xff\xfea\0b"}, [("a", "a\ufffd")]),
    "text: NULs": Broken("text", {"a.txt": b"\0one\0 \0two"}, [("a", "one two")]),
    "text: control characters": Broken(
        "text", {"a.txt": b"\x01a\x0b\x1b[0m"}, [("a", "\x01a\x0b\x1b[0m")]),
    "text: a line of 600,000 characters": Broken(
        "text", {"a.txt": b"x" * 600_000}, [("a", "x" * 600_000)]),
    "text: labels and templates": Broken(
        "text", {"a.txt": b"<5> Page [3] {{ x }} <|im_start|>"},
        [("a", "<5> Page [3] {{ x }} <|im_start|>")]),
    "text: 0 bytes": Broken(
        "text", {"a.txt": b"", "b.md": b"x"}, [("a", ""), ("b", "x")],
        wrong=["a.txt: the text has no words"]),
    "text: NULs alone": Broken(
        "text", {"a.txt": b"\0" * 99, "b.md": b"x"}, [("a", ""), ("b", "x")],
        wrong=["a.txt: the text has no words"]),
    "text: gzip": Broken("text", {"a.txt": gzip.compress(b"one")}, [("a", "one")]),
    "text: gzip that ends early": Broken(
        "text", {"a.txt": gzip.compress(b"one two " * 99)[:-9], "b.md": b"x"},
        [("a", ""), ("b", "x")],
        wrong=["a.txt: the gzip file is damaged (Compressed file ended before"]),
    "text: names of dots": Broken(
        "text", {"a..b.txt": b"x", ".txt": b"y"}, [(".txt", ""), ("a..b", "x")],
        wrong=[".txt: hidden; "]),
    "text: nothing to read": Broken(
        "text", {"a.txt": b"", "b.pdf": b"%PDF-"}, refused=r"no document .* a\.txt: the text"),
    "text: torn questions": Broken(
        "text", {"a.txt": b"one", "questions.jsonl": lines(ASKED) + b'{"document_id"'},
        [("a", "one"), ("questions.jsonl:2", "")], ["Who?"],
        ["questions.jsonl:2: not JSON (", "questions.jsonl:2: not JSON ("]),
    "text: empty questions": Broken(
        "text", {"a.txt": b"one", "questions.jsonl": b""}, refused=r"questions\.jsonl: no line"),
    # Tables.
    "tables: span reversed": Broken(
        "tables", tables(evidence=[[5, 2]]), [("a", "one two")], wrong=[SPAN + "[5, 2] is no st"]),
    "tables: span past the end": Broken(
        "tables", tables(evidence=[[0, 8]]), [("a", "one two")], wrong=[SPAN + "[0, 8] is no st"]),
    "tables: span below 0": Broken(
        "tables", tables(evidence=[[-1, 3]]), [("a", "one two")], wrong=[SPAN + "[-1, 3] is no"]),
    "tables: span of fractions": Broken(
        "tables", tables(evidence=[[0.5, 3]]), [("a", "one two")], wrong=[SPAN + "[0.5, 3] is"]),
    "tables: span of three": Broken(
        "tables", tables(evidence=[[0, 1, 2]]), [("a", "one two")], wrong=[SPAN + "[0, 1, 2] is"]),
    "tables: span of everything": Broken(
        "tables", tables(evidence=[[0, 7], [2, 3]]), [("a", "one two")], ["Who?"]),
    "tables: id a path": Broken(
        "tables", tables({**TEXT, "document_id": "../a/b\\c"}, document_id="../a/b\\c"),
        [("../a/b\\c", "one two")], ["Who?"]),
    "tables: id of 300 characters": Broken(
        "tables", tables({**TEXT, "document_id": "i" * 300}, document_id="i" * 300),
        [("i" * 300, "one two")], ["Who?"]),
    "tables: id of one dot": Broken(
        "tables", tables({**TEXT, "document_id": "."}, document_id="."),
        [(".", "one two")], ["Who?"]),
    "tables: id like a template": Broken(
        "tables", tables({**TEXT, "document_id": "{{ x }}"}, document_id="{{ x }}"),
        [("{{ x }}", "one two")], ["Who?"]),
    "tables: id a line break": Broken(
        "tables", tables({**TEXT, "document_id": "a\nb\0"}, document_id="a\nb\0"),
        [("a\nb\0", "one two")], ["Who?"]),
    "tables: three options": Broken(
        "tables", tables(options=["a", "b", "c"], answer_index=2), [("a", "one two")], ["Who?"]),
    "tables: the same options": Broken(
        "tables", tables(options=["a", "a"], answer_index=1), [("a", "one two")], ["Who?"]),
    "tables: empty options": Broken(
        "tables", tables(options=["", ""], answer_index=1), [("a", "one two")], ["Who?"]),
    "tables: references empty": Broken(
        "tables", tables(references=[]), [("a", "one two")], ["Who?"]),
    "tables: references of nothing": Broken(
        "tables", tables(references=["", " "]), [("a", "one two")], ["Who?"]),
    "tables: 0 bytes of Parquet": Broken(
        "tables", {"documents.parquet": b""}, refused=r"documents\.parquet.*; "),
    "tables: Parquet that is text": Broken(
        "tables", {"documents.parquet": b"text\none\n"}, refused=r"documents\.parquet.*; "),
    "tables: Parquet that ends early": Broken(
        "tables", {"documents.parquet": parquet(text=["one"])[:-20]},
        refused=r"documents\.parquet.*; "),
    "tables: Parquet without rows": Broken(
        "tables", {"documents.parquet": parquet(text=pa.array([], pa.string()))},
        refused=r"documents\.parquet: no line or row in it is an object"),
    "tables: Parquet of bytes": Broken(
        "tables", {"documents.parquet": parquet(document_id=["a"], text=[b"one\xff"])},
        [("a", "")], wrong=["documents.parquet:1: `text` is bytes, not a string"]),
    "tables: Parquet of lists": Broken(
        "tables", {"documents.parquet": parquet(document_id=["a"], text=[["one"]])},
        [("a", "")], wrong=["documents.parquet:1: `text` is a list, not a string"]),
    "tables: Parquet without a text": Broken(
        "tables", {"documents.parquet": parquet(document_id=["a"])}, [("a", "")],
        wrong=["documents.parquet:1: no `text`; add it"]),
    "tables: Parquet with all that may stand beside": Broken(
        "tables", {"documents.parquet": parquet(
            document_id=["a"], text=["one"], when=[date(2024, 1, 1)], at=[datetime(2024, 1, 1)],
            price=[Decimal("1.5")], raw=[b"\xff"], n=[float("inf")], nested=[{"k": [1]}])},
        [("a", "")], wrong=["documents.parquet:1: metadata cannot be written as JSON ("]),
    "tables: Parquet with dates beside": Broken(
        "tables", {"documents.parquet": parquet(
            document_id=["a"], text=["one"], when=[date(2024, 1, 1)], price=[Decimal("1.5")],
            raw=[b"\xff"], nested=[{"k": [1]}])},
        [("a", "one")]),
    # QuALITY: whatever HTML it is, a text.
    "quality: not closed": Broken("quality", quality("<html><p>one <i>two<p>three"),
                                  [("1", "one two\n\nthree")], ["Which?"]),
    "quality: closed too often": Broken(
        "quality", quality("<p>one</p></p></div></pre></script> two"),
        [("1", "one\n\ntwo")], ["Which?"]),
    "quality: a script not closed": Broken(
        "quality", quality("<p>one</p><script>two"), [("1", "one")], ["Which?"]),
    "quality: entities that are none": Broken(
        "quality", quality("<p>A&B &nosuch; &#xD800; &#0; &#99999999; 1<2"),
        [("1", "A&B &nosuch; \ufffd \ufffd \ufffd 1<2")], ["Which?"]),
    "quality: tags alone": Broken(
        "quality", quality("<html><body><p></p></body></html>"), [("1", "")], ["Which?"],
        ["a.dev:1: the text has no words"]),
    "quality: 10,000 tags within each other": Broken(
        "quality", quality("<p>one" + "<div>" * 10_000 + "two"), [("1", "one\n\ntwo")], ["Which?"]),
    "quality: HTML in an option": Broken("quality", {"a.dev": lines({**QUALITY, "questions": [
        {**QUALITY["questions"][0], "options": ["<b>x</b>", "{{ y }}"]}]})},
        [("1", "one")], ["Which?"]),
    "quality: five options": Broken("quality", {"a.dev": lines({**QUALITY, "questions": [
        {**QUALITY["questions"][0], "options": list("abcde"), "gold_label": 5}]})},
        [("1", "one")], ["Which?"]),
    "quality: questions missing": Broken(
        "quality", {"a.dev": lines({"article_id": "1", "article": "one"})}, [("1", "one")],
        wrong=["a.dev:1: questions: null, not a list; fix it"]),
    "quality: an article given as lines": Broken(
        "quality", {"a.dev": lines({**QUALITY, "article": ["one", "two"]})},
        [("1", "")], ["Which?"],
        ["a.dev:1: `article` is a list, not a string"]),
    # QMSum.
    "qmsum: a file of one meeting, torn": Broken(
        "qmsum", {"m.json": json.dumps(MEETING, indent=1).encode()[:99], "n.json": lines(MEETING)},
        [("m.json:1", ""), ("*", "A: one")], ["What?"], ["m.json:1: not JSON ("]),
    "qmsum: queries missing": Broken(
        "qmsum", {"m.jsonl": lines({"meeting_transcripts": MEETING["meeting_transcripts"]})},
        [("*", "A: one")],
        wrong=["m.jsonl:1: general_query_list: null, not a list",
               "m.jsonl:1: specific_query_list: null, not a list"]),
    "qmsum: control characters": Broken(
        "qmsum", {"m.jsonl": lines({**MEETING, "meeting_transcripts": [
            {"speaker": "A\0", "content": "\x0cone\x1b \n\n two {{ x }}"}]})},
        [("*", "A\0: one\x1b two {{ x }}")], ["What?"]),
    "qmsum: a turn of 600,000 characters": Broken(
        "qmsum", {"m.jsonl": lines({**MEETING, "meeting_transcripts": [
            {"speaker": "A", "content": "x" * 600_000}]})},
        [("*", "A: " + "x" * 600_000)], ["What?"]),
    "qmsum: UTF-16": Broken(
        "qmsum", {"m.jsonl": json.dumps(MEETING).encode("utf-16")},
        [("*", "A: one")], ["What?"]),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_what_comes_of_it(tmp_path: Path, case: str) -> None:
    broken = BROKEN[case]
    for name, content in broken.files.items():
        (tmp_path / name).write_bytes(content)
    if broken.refused:
        with pytest.raises(UsageError, match=broken.refused) as caught:
            loaded(tmp_path, broken.corpus)
        assert "\n" not in str(caught.value)
        return
    corpus = loaded(tmp_path, broken.corpus)
    made = [item.document.document_id for item in corpus]
    wanted = [name if name != "*" else made[i] for i, (name, _) in enumerate(broken.documents)]
    assert made == wanted
    assert [item.document.text for item in corpus] == [text for _, text in broken.documents]
    assert [q.question for q in asked(corpus) if q.problem is None] == broken.asked
    found = details(corpus)
    assert len(found) == len(broken.wrong)
    assert all(f.startswith(w) for f, w in zip(found, broken.wrong, strict=True)), found


@pytest.mark.parametrize("rest", ["<a href='x", "<!-- two", "<", "<!", "<![CDATA[ two", "</", "&#"])
def test_what_html_breaks_off_in_costs_nothing_before_it(tmp_path: Path, rest: str) -> None:
    """Python's parser drops or keeps such a rest, by its version."""
    (tmp_path / "a.dev").write_bytes(quality(f"<p>one</p>{rest}")["a.dev"])
    [item] = loaded(tmp_path, "quality")
    assert item.document.text.split()[0] == "one" and item.document.problem is None
    assert [q.question for q in item.questions] == ["Which?"]
