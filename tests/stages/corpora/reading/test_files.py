"""Files of rows: JSON lines, JSON lists, CSV, Parquet, gzip; whole, torn and of no use."""

import csv
import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from upath import UPath

from pipeline.core.errors import UsageError
from stages.corpora.reading.files import read_rows
from stages.corpora.reading.values import Row
from tests.support.texts.loading import details, loaded

ROWS = [{"n": str(n), "text": f'line\n\n{n}, with; "quotes"|\tand é, 😀'} for n in range(50)]


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
    schema = None if rows else pa.schema({"text": pa.string()})
    pq.write_table(pa.Table.from_pylist(rows, schema), file, row_group_size=7)
    return file.getvalue()


CONTAINERS: dict[str, Callable[[list[dict[str, Any]]], bytes]] = {
    "rows.jsonl": as_lines,
    "rows": as_lines,
    "lines.json": as_lines,
    "list.json": as_list,
    "bom.json": lambda rows: b"\xef\xbb\xbf \n" + as_list(rows),
    "blank.jsonl": lambda rows: b"\n  \n" + as_lines(rows).replace(b"\n", b"\n\n"),
    "rows.csv": as_csv,
    "bom.csv": lambda rows: b"\xef\xbb\xbf" + as_csv(rows),
    "odd.csv": lambda rows: as_csv(rows, lineterminator="\r\r\n"),
    "rows.tsv": lambda rows: as_csv(rows, delimiter="\t"),
    "semicolons.csv": lambda rows: as_csv(rows, delimiter=";"),
    "bars.csv": lambda rows: as_csv(rows, delimiter="|"),
    "tabs.csv": lambda rows: as_csv(rows, delimiter="\t"),
    "utf-16.jsonl": lambda rows: as_lines(rows).decode().encode("utf-16"),
    "utf-16.json": lambda rows: as_list(rows).decode().encode("utf-16"),
    "utf-32.csv": lambda rows: as_csv(rows).decode().encode("utf-32"),
    "rows.parquet": as_parquet,
}


def read(folder: Path, name: str, content: bytes) -> list[Row]:
    (folder / name).write_bytes(content)
    return list(read_rows(UPath(folder / name)))


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", CONTAINERS)
def test_every_container_holds_the_same_rows(tmp_path: Path, name: str, packed: bool) -> None:
    content = CONTAINERS[name](ROWS)
    if packed and not name.endswith("parquet"):
        content, name = gzip.compress(content), f"{name}.gz"
    assert [row.value for row in read(tmp_path, name, content)] == ROWS


@pytest.mark.parametrize(
    ("name", "content", "lines"),
    [
        ("a.csv", as_csv(ROWS[:3]), [2, 5, 8]),  # every text has three lines
        ("a.jsonl", b"\n" + as_lines(ROWS[:3]), [2, 3, 4]),
        ("a.json", as_list(ROWS[:3]), [1, 2, 3]),
        ("a.json", json.dumps(ROWS[0], indent=1).encode(), [1]),  # one object over several lines
    ],
)
def test_a_row_stands_where_its_line_begins(
    tmp_path: Path, name: str, content: bytes, lines: list[int]
) -> None:
    places = [(row.line, row.value) for row in read(tmp_path, name, content)]
    assert places == [*zip(lines, ROWS, strict=False)]


LINE = b'{"text": "one"}\n'
CSV = b"text,n\none,1\n"
NO_TEXT = bytes(range(0x80, 0x100))
# id: file, what is written, what is said of the row behind a good one.
TORN: dict[str, tuple[str, bytes, str]] = {
    "torn line": ("a.jsonl", LINE + b'{"text": "tw', "a.jsonl:2: not JSON (Unterminated"),
    "Latin-1": ("a.jsonl", LINE + b'{"text": "caf\xe9"}\n', "a.jsonl:2: not JSON ('utf-8' codec"),
    "NaN": ("a.jsonl", LINE + b'{"text": NaN}', "a.jsonl:2: no `text`; add it"),
    "deep": ("a.jsonl", LINE + b"[" * 100_000, "a.jsonl:2: not JSON (maximum recursion"),
    "list": ("a.jsonl", LINE + b"[1]", "a.jsonl:2: a list, not an object; fix or delete it"),
    "deep in a list": ("a.json", b'[{"text": "one"}, {"text": "x", "e": ' + b"[" * 3000
                       + b"]" * 3000 + b"}]", "a.json:2: "),
    "list not closed": ("a.json", b'[{"text": "one"}', "on (parse error: premature EOF); "),
    "list of a string": ("a.json", b'[{"text": "one"}, "x"]', "a.json:2: a string, not an obj"),
    "list no UTF-8": ("a.json", b'[{"text": "one"}, {"text": "\xff"}]', "a.json:2: not JSON fr"),
    "too many cells": ("a.csv", CSV + b"two,2,3\n", "a.csv:3: 3 cells, the header has 2; quote"),
    "cell no text": ("a.csv", CSV + NO_TEXT + b",2\n", "a.csv:3: text of no known encoding"),
    "quote not closed": ("a.csv", CSV + b'"two,2\n', "a.csv:3: no CSV from here on (unexpec"),
}  # fmt: skip


@pytest.mark.parametrize("case", TORN)
def test_what_is_torn_is_one_bad_row(tmp_path: Path, case: str) -> None:
    name, content, words = TORN[case]
    (tmp_path / name).write_bytes(content)
    corpus = loaded(tmp_path / name, "records", fields={"question": None})
    assert [item.document.text for item in corpus] == ["one", ""]
    [detail] = details(corpus)
    assert words in detail and "; " in detail and len(detail) < 200


UMLAUTS = "text,n\r\nzwölf Löwen,1\r\nplain,2\r\nfünf Möwen,3\r\n"
CHINESE = "text,n\n老王在灯塔上住了三十年。,1\nplain,2\n两天以后，面包师来救了他。,3\n"
STRAY = "text,n\nzwölf,1\nfünf \ufffd\ufffd Möwen,2\ndrei,3\n"
MIXED = "text,n\nzwölf,1\nL\ufffdwen,2\nM\ufffdwen,3\n"
# What is read, what is written, what is said, and how that begins for each row.
ENCODED: dict[str, tuple[str, bytes, str, list[str]]] = {
    "windows-1252": (UMLAUTS, UMLAUTS.encode("cp1252"), "read as cp1252; ",
                     ["a.csv: ", "", "a.csv: "]),  # ASCII is the same in all
    "GBK": (CHINESE, CHINESE.encode("gbk"), "read as gb18030; ", ["a.csv: ", "", "a.csv: "]),
    "UTF-16 without a mark": (CHINESE, CHINESE.encode("utf-16-le"), "", [""] * 3),
    "UTF-8 with a mark": (UMLAUTS, UMLAUTS.encode("utf-8-sig"), "", [""] * 3),
    "stray bytes": (STRAY, STRAY.encode().replace("\ufffd".encode(), b"\x96"), ": 2; ",
                    ["", "a.csv:3: ", ""]),
    "UTF-8 by its first line": (MIXED, MIXED.encode().replace("\ufffd".encode(), b"\xf6"), ": 1; ",
                                ["", "a.csv:3: ", "a.csv:4: "]),
}  # fmt: skip


@pytest.mark.parametrize("case", ENCODED)
def test_a_csv_in_another_encoding_is_read_and_named(tmp_path: Path, case: str) -> None:
    text, content, words, begins = ENCODED[case]
    (tmp_path / "a.csv").write_bytes(content)
    corpus = loaded(tmp_path, "csv", fields={"question": None})
    wanted = [line.split(",")[0] for line in text.splitlines()[1:]]
    assert [item.document.text for item in corpus] == wanted
    said = [item.document.detail for item in corpus]
    assert [bool(detail) for detail in said] == [bool(begin) for begin in begins]
    for detail, begin in zip(said, begins, strict=True):
        assert not detail or (detail.startswith(begin) and words in detail)


@pytest.mark.parametrize("name", ["rows.jsonl", "list.json", "rows.csv"])
def test_gzip_that_ends_early_keeps_what_is_before(tmp_path: Path, name: str) -> None:
    rows = [{"text": f"{n} {n**9 % 7919**3:x} {n * 7919:x}"} for n in range(9000)]
    content = gzip.compress(CONTAINERS[name](rows))
    *whole, last = read(tmp_path, f"{name}.gz", content[: len(content) // 2])
    assert len(whole) > 500 and [row.value for row in whole] == rows[: len(whole)]
    assert last.value is None and "fetch it again" in last.wrong
    assert last.line == len(whole) + (2 if name == "rows.csv" else 1)


def test_values_of_a_list_may_be_nested_to_any_depth(tmp_path: Path) -> None:
    deep, options = "[" * 3000 + "]" * 3000, '["sea", "river"]'
    rows = [
        f'{{"text": "one", "question": {deep}}}',
        f'{{"text": "one", "question": "Q?", "options": {options}, "answer_index": {deep}}}',
    ]
    (tmp_path / "a.json").write_text(f"[{', '.join(rows)}]")
    fields = {"question": "question", "options": ["options"], "answer_index": "answer_index"}
    [item] = loaded(tmp_path / "a.json", "records", fields=fields)
    assert [question.problem for question in item.questions] == ["bad_input"] * 2


DAMAGED = as_parquet(ROWS)[:8] + b"\xff" * 32 + as_parquet(ROWS)[40:]  # in its first page
USELESS: dict[str, tuple[str, bytes, str]] = {
    "empty": ("a.jsonl", b"", r"a\.jsonl: no line or row in it is an object; set corpus\.path="),
    "header alone": ("a.csv", b"text,n\n", r"a\.csv: no line or row in it is an object"),
    "Parquet torn": ("a.parquet", as_parquet(ROWS)[:-9], r"a\.parquet.*; "),
    "Parquet damaged within": ("a.parquet", DAMAGED, r"a\.parquet.*; "),
    "Parquet without rows": ("a.parquet", as_parquet([]), r"a\.parquet: no line or row in it is"),
    "two columns": ("a.csv", b"text,n,text\n", r"a.csv:1: two columns are called .text.; "),
    "gzip cut": ("a.jsonl.gz", gzip.compress(as_lines(ROWS))[:-9], r"gz:1: the gzip file is dam"),
    "UTF-16": ("a.jsonl", b"\xff\xfe\x00\xd8{\0}\0", "damaged UTF-16; save it as UTF-8"),
}  # fmt: skip


@pytest.mark.parametrize("case", USELESS)
def test_a_file_of_no_use_is_one_error(tmp_path: Path, case: str) -> None:
    name, content, words = USELESS[case]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=words) as caught:
        loaded(tmp_path / name, "records", fields={"question": None})
    assert "\n" not in str(caught.value)
