"""Files of rows: JSON lines, JSON lists, CSV, Parquet, gzip; whole, torn and of no use."""

import csv
import gzip
import io
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from upath import UPath

from pipeline.core.errors import UsageError
from stages.corpora.reading.files import read_rows
from stages.corpora.reading.rows import Row
from tests.support.texts.loading import details, loaded, notes

ROWS = [{"n": str(n), "text": f'line\n\n{n}, with "quotes" and é'} for n in range(50)]


def as_lines(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def as_list(rows: list[dict[str, Any]]) -> bytes:
    return json.dumps(rows, indent=2, ensure_ascii=False).encode()


def as_csv(rows: list[dict[str, Any]], **how: Any) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]), **how)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def as_parquet(rows: list[dict[str, Any]]) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), file, row_group_size=7)
    return file.getvalue()


CONTAINERS: dict[str, Callable[[list[dict[str, Any]]], bytes]] = {
    "rows.jsonl": as_lines,
    "rows": as_lines,
    "lines.json": as_lines,
    "list.json": as_list,
    "bom.json": lambda rows: b"\xef\xbb\xbf \n" + as_list(rows),
    "crlf.jsonl": lambda rows: as_lines(rows).replace(b"\n", b"\r\n"),
    "blank.jsonl": lambda rows: b"\n  \n" + as_lines(rows).replace(b"\n", b"\n\n"),
    "unended.jsonl": lambda rows: as_lines(rows).rstrip(),
    "rows.csv": as_csv,
    "lf.csv": lambda rows: as_csv(rows, lineterminator="\n"),
    "quoted.csv": lambda rows: as_csv(rows, quoting=csv.QUOTE_ALL),
    "bom.csv": lambda rows: b"\xef\xbb\xbf" + as_csv(rows),
    "odd.csv": lambda rows: as_csv(rows, lineterminator="\r\r\n"),
    "rows.tsv": lambda rows: as_csv(rows, delimiter="\t"),
    "rows.parquet": as_parquet,
}


def written(folder: Path, name: str, content: bytes) -> UPath:
    (folder / name).write_bytes(content)
    return UPath(folder / name)


def values(rows: list[Row]) -> list[dict[str, Any] | None]:
    return [row.value for row in rows]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", CONTAINERS)
def test_every_container_holds_the_same_rows(tmp_path: Path, name: str, packed: bool) -> None:
    content = CONTAINERS[name](ROWS)
    if packed and not name.endswith("parquet"):
        content, name = gzip.compress(content), f"{name}.gz"
    assert values(list(read_rows(written(tmp_path, name, content)))) == ROWS


def test_a_row_stands_where_its_line_begins(tmp_path: Path) -> None:
    found = list(read_rows(written(tmp_path, "a.csv", as_csv(ROWS[:3]))))
    assert [row.line for row in found] == [2, 5, 8]  # every text has three lines
    found = list(read_rows(written(tmp_path, "a.jsonl", b"\n" + as_lines(ROWS[:3]))))
    assert [row.line for row in found] == [2, 3, 4]
    found = list(read_rows(written(tmp_path, "a.json", as_list(ROWS[:3]))))
    assert [row.line for row in found] == [1, 2, 3]


def test_one_object_over_several_lines_is_a_row(tmp_path: Path) -> None:
    content = json.dumps(ROWS[0], indent=1).encode()
    assert values(list(read_rows(written(tmp_path, "m.json", content)))) == [ROWS[0]]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.dictionaries(st.just("k"), st.text(max_size=9), min_size=1), min_size=1))
def test_json_text_of_any_kind_is_read_as_it_was(rows: list[dict[str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name, dump in (("a.jsonl", as_lines), ("a.json", as_list)):
            assert values(list(read_rows(written(Path(folder), name, dump(rows))))) == rows


GOOD = {"text": "one"}
LINE = json.dumps(GOOD).encode() + b"\n"
CSV = b"text,n\none,1\n"
NO_TEXT = bytes(range(0x80, 0x100))
# id: file, what is written, the good rows, what is said of the bad one.
TORN: dict[str, tuple[str, bytes, int, str]] = {
    "torn line": ("a.jsonl", LINE + b'{"text": "tw', 1, "a.jsonl:2: not JSON (Unterminated"),
    "two objects a line": ("a.jsonl", LINE + b"{}{}\n", 1, "a.jsonl:2: not JSON (Extra data"),
    "a string": ("a.jsonl", LINE + b'"x"\n', 1, "a.jsonl:2: a string, not an object"),
    "null": ("a.jsonl", LINE + b"null\n", 1, "a.jsonl:2: null, not an object"),
    "no UTF-8": ("a.jsonl", LINE + b'{"text": "\xff\xfe"}\n', 1, "a.jsonl:2: not JSON ("),
    "Latin-1": ("a.jsonl", LINE + b'{"text": "caf\xe9"}\n', 1, "a.jsonl:2: not JSON ("),
    "NUL bytes": ("a.jsonl", LINE + b"\0\0\0\0\n", 1, "a.jsonl:2: not JSON ("),
    "a raw control character": ("a.jsonl", LINE + b'{"text": "\x01"}', 1, "(Invalid control char"),
    "NaN": ("a.jsonl", LINE + b'{"text": NaN}', 1, "a.jsonl:2: not JSON (NaN is no JSON number)"),
    "deep": ("a.jsonl", LINE + b"[" * 100_000, 1, "a.jsonl:2: not JSON (maximum recursion"),
    "a number of 5,000 digits": ("a.jsonl", LINE + b'{"n": ' + b"9" * 5000 + b"}", 1, "not JSON ("),
    "HTML for JSON": ("a.jsonl", LINE + b"<html>404</html>", 1, "a.jsonl:2: not JSON (Expecting"),
    "list torn": ("a.json", b'[{"text": "one"}, {"te', 1, "a.json:2: not JSON from here on ("),
    "list not closed": ("a.json", b'[{"text": "one"}', 1, "a.json:2: not JSON from here on ("),
    "list with a comma": ("a.json", b'[{"text": "one"},]', 1, "a.json:2: not JSON from here on ("),
    "list of a string": ("a.json", b'[{"text": "one"}, "x"]', 1, "a.json:2: a string, not an obj"),
    "list with bytes after": ("a.json", b'[{"text": "one"}] x', 1, "a.json:2: not JSON from here"),
    "list no UTF-8": ("a.json", b'[{"text": "one"}, {"text": "\xff"}]', 1, "a.json:2: not JSON fr"),
    "list with NaN": ("a.json", b'[{"text": "one"}, {"n": NaN}]', 1, "a.json:2: not JSON from her"),
    "too many cells": ("a.csv", CSV + b"two,2,3\n", 1, "a.csv:3: 3 cells, the header has 2; quote"),
    "too few cells": ("a.csv", CSV + b"two\n", 1, "a.csv:3: 1 cells, the header has 2; quote"),
    "cell no text": ("a.csv", CSV + NO_TEXT + b",2\n", 1, "a.csv:3: text of no known encoding"),
    "quote not closed": ("a.csv", CSV + b'"two,2\n', 1, "a.csv:3: no CSV from here on (unexpec"),
    "text after a quote": ("a.csv", CSV + b'"two"x,2\n', 1, "a.csv:3: no CSV from here on ("),
}  # fmt: skip


UMLAUTS = "text,n\r\nzwölf Löwen,1\r\nplain,2\r\nfünf Möwen,3\r\n"
CHINESE = "text,n\n老王在灯塔上住了三十年。,1\nplain,2\n两天以后，面包师来救了他。,3\n"
ENCODED: dict[str, tuple[str, str, str | None]] = {
    "windows-1252": (UMLAUTS, "cp1252", "cp1252"),
    "GBK": (CHINESE, "gbk", "gb18030"),
    "UTF-16 without a mark": (CHINESE, "utf-16-le", "utf_16_le"),
    "UTF-16 of Latin letters": (UMLAUTS, "utf-16-be", "utf_16_be"),
    "UTF-8 with a mark": (UMLAUTS, "utf-8-sig", None),
}


@pytest.mark.parametrize("case", ENCODED)
def test_a_csv_in_another_encoding_is_read_and_named_once(tmp_path: Path, case: str) -> None:
    text, encoding, named = ENCODED[case]
    (tmp_path / "a.csv").write_bytes(text.encode(encoding))
    corpus = loaded(tmp_path, "csv", fields={"question": None})
    wanted = [line.split(",")[0] for line in text.splitlines()[1:]]
    assert [item.document.text for item in corpus] == wanted
    said = notes(corpus)
    assert len(said) == bool(named) and all(f"read as {named}; " in line for line in said)
    assert all(line.startswith("a.csv: ") for line in said)
    # ASCII is the same in all but UTF-16.
    assert (corpus[1].document.detail is None) == (not encoding.startswith("utf-16"))


def test_a_stray_byte_in_a_csv_costs_itself(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(
        "text,n\nzwölf,1\nfünf ~~ Möwen,2\ndrei,3\n".encode().replace(b"~", b"\x96")
    )
    corpus = loaded(tmp_path, "csv", fields={"question": None})
    assert [item.document.text for item in corpus] == ["zwölf", "fünf \ufffd\ufffd Möwen", "drei"]
    [said] = notes(corpus)
    assert said.startswith("a.csv:3: ") and ": 2; " in said


@pytest.mark.parametrize("case", TORN)
def test_what_is_torn_is_one_bad_row(tmp_path: Path, case: str) -> None:
    name, content, num_good, words = TORN[case]
    corpus = loaded(
        Path(str(written(tmp_path, name, content))), "records", fields={"question": None}
    )  # fmt: skip
    assert [item.document.text for item in corpus] == ["one"] * num_good + [""]
    [detail] = details(corpus)
    assert words in detail and "; " in detail and len(detail) < 200


@pytest.mark.parametrize("name", ["rows.jsonl", "list.json", "rows.csv"])
@pytest.mark.parametrize("share", [0.5, 0.9])
def test_gzip_that_ends_early_keeps_what_is_before(tmp_path: Path, name: str, share: float) -> None:
    rows = [{"text": f"{n} {n**9 % 7919**3:x} {n * 7919:x}"} for n in range(5000)]
    content = gzip.compress(CONTAINERS[name](rows))
    file = written(tmp_path, f"{name}.gz", content[: int(share * len(content))])
    found = list(read_rows(file))
    assert len(found) > 500 and values(found[:-1]) == rows[: len(found) - 1]
    assert found[-1].value is None and "fetch it again" in found[-1].wrong


def test_gzip_that_is_damaged_within_keeps_what_is_before(tmp_path: Path) -> None:
    rows = [{"text": f"{n} {n * 7919:x}"} for n in range(5000)]
    content = bytearray(gzip.compress(as_lines(rows)))
    content[len(content) // 2 : len(content) // 2 + 40] = b"\0" * 40
    found = list(read_rows(written(tmp_path, "a.jsonl.gz", bytes(content))))
    assert found[0].value == rows[0] and found[-1].value is None


USELESS: dict[str, tuple[str, bytes, str]] = {
    "empty": ("a.jsonl", b"", r"a\.jsonl: no line or row in it is an object; set corpus\.path="),
    "empty list": ("a.json", b"[]", r"a\.json: no line or row in it is an object"),
    "empty json": ("a.json", b"", r"a\.json: no line or row in it is an object"),
    "no header": ("a.csv", b"", r"a\.csv: no line or row in it is an object"),
    "header alone": ("a.csv", b"text,n\n", r"a\.csv: no line or row in it is an object"),
    "empty gzip": ("a.jsonl.gz", gzip.compress(b""), "no line or row in it is an object"),
    "0 bytes as Parquet": ("a.parquet", b"", r"a\.parquet.*; "),
    "corrupt Parquet": ("a.parquet", b"PAR1 not at all PAR1", r"a\.parquet.*; "),
    "Parquet torn": ("a.parquet", as_parquet(ROWS)[:-9], r"a\.parquet.*; "),
    "Parquet damaged within": ("a.parquet", b"", r"a\.parquet.*; "),
    "Parquet without rows": ("a.parquet", b"", r"a\.parquet: no line or row in it is an object"),
    "a picture": ("a.jsonl", b"\x89PNG\r\n\x1a\n\0\0", r"a\.jsonl: a picture, not text; "),
    "misspelt": ("a.jsonl", b'{"txt": "one"}', r"fields\.text=text: not in a\.jsonl:1, which has "),
    "misspelt column": ("a.csv", b"txt\none\n", r"fields\.text=text: not in a\.csv:2, which has t"),
}  # fmt: skip


def damaged(rows: list[dict[str, Any]]) -> bytes:
    """Parquet whose footer is whole and whose first page is not."""
    content = bytearray(as_parquet(rows))
    content[8:40] = b"\xff" * 32
    return bytes(content)


@pytest.mark.parametrize("case", USELESS)
def test_a_file_of_no_use_is_one_error(tmp_path: Path, case: str) -> None:
    name, content, words = USELESS[case]
    if case == "Parquet damaged within":
        content = damaged(ROWS)
    if case == "Parquet without rows":
        file = io.BytesIO()
        pq.write_table(pa.table({"text": pa.array([], pa.string())}), file)
        content = file.getvalue()
    with pytest.raises(UsageError, match=words) as caught:
        loaded(Path(str(written(tmp_path, name, content))), "records", fields={"question": None})
    assert "\n" not in str(caught.value)


# Sentences in the encodings that files without a declaration have, and names of these.
SENTENCES: dict[str, tuple[str, str]] = {
    "cp1252": ("Le café était fermé à midi … et la « clé » perdue.", "cp1252"),
    "latin-1": ("Der Müller ging über die Brücke, und es fiel großer Schnee.", "cp1252"),
    "cp1250": ("Łódź płynęła rzeką, a strażnik patrzył na żółte światła.", "cp1250"),
    "cp1251": ("Смотритель поднимался на башню каждый вечер.", "cp1251"),
    "koi8-r": ("Смотритель поднимался на башню каждый вечер.", "koi8_r"),
    "cp1253": ("Ο φύλακας ανέβαινε στον πύργο κάθε βράδυ.", "cp1253"),
    "gbk": ("守塔人每天傍晚六点登上灯塔，带着一罐油。", "gb18030"),
    "euc-kr": ("등대지기는 매일 저녁 탑에 올랐다.", "cp949"),
}


@pytest.mark.parametrize("kind", ["jsonl", "json"])
@pytest.mark.parametrize("encoding", SENTENCES)
def test_json_in_another_encoding_says_in_which(tmp_path: Path, encoding: str, kind: str) -> None:
    text, name = SENTENCES[encoding]
    rows = [GOOD, {"text": text}]
    lines = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    content = lines if kind == "jsonl" else f"[{lines.replace(chr(10), ',')}]"
    first, bad = read_rows(written(tmp_path, f"a.{kind}", content.encode(encoding)))
    assert (first.value, bad.value) == (GOOD, None)
    assert name in bad.wrong and "UTF-8" in bad.wrong and "\n" not in bad.wrong
    assert len(bad.wrong) < 200


def test_a_stray_byte_is_no_other_encoding(tmp_path: Path) -> None:
    line = '{"text": "Le café était fermé"}'.encode() + b"\n"
    torn = line.replace(b"caf", b"caf\xff")
    *_, bad = read_rows(written(tmp_path, "a.jsonl", line + torn))
    assert "byte 17 is not UTF-8" in bad.wrong and "it seems" not in bad.wrong


def test_a_folder_for_a_file_and_a_file_that_is_gone(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").mkdir()
    for path in (tmp_path / "a.jsonl", tmp_path / "gone.jsonl"):
        with pytest.raises(UsageError, match=r"; set corpus\.path="):
            list(read_rows(UPath(path)))


def test_lone_surrogates_become_replacement_characters(tmp_path: Path) -> None:
    content = rb'{"text": "a \ud800 b \ud83d\ude00"}'
    for name, wrapped in (("a.jsonl", content), ("a.json", b"[" + content + b"]")):
        [row] = read_rows(written(tmp_path, name, wrapped))
        assert row.value is not None
        text = row.value["text"]
        assert text.encode().decode() == text and text.endswith("b \U0001f600")
        assert text.startswith("a ") and "\ud800" not in text


@pytest.mark.parametrize("key", ["_id", "question", "answer", "context", "choice_A", "domain"])
def test_a_list_of_lists_of_lists_is_one_bad_row(tmp_path: Path, key: str) -> None:
    row = {"_id": "1", "question": "q", "choice_A": "a", "choice_B": "b", "choice_C": "c",
           "choice_D": "d", "answer": "A", "context": "x"}  # fmt: skip
    deep = json.dumps({**row, key: "@"}).replace('"@"', "[" * 9_000 + "]" * 9_000)
    (tmp_path / "data.json").write_text(f"[{json.dumps({**row, '_id': '0'})}, {deep}]")
    [detail] = details(loaded(tmp_path, "longbench_v2"))
    assert detail == f"data.json:2: `{key}` is a list, not a string; fix it"
