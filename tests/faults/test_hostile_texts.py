"""Ids, titles and texts of a corpus that would break a terminal, a page, a path or a view."""

import json
from pathlib import Path

import pytest

from jobs.output.print_tables import Table, markdown, print_json, print_line, printable
from jobs.report.render import report_page
from pipeline.store import connect
from pipeline.store.sql.connection import query
from tests.support.runs.small_run import SmallRun
from tests.support.runs.warehouse import Warehouse, chunk, step
from tests.support.texts.small_corpus import document, question, write

pytestmark = pytest.mark.sampled

# Clears a screen, sets a title, is a C1 control, turns text round, rings, returns, deletes.
CONTROLS = (
    "\x1b[2J", "\x1b]0;owned\x07", "\x9b2J", "\u202egpj.exe", "\u2066", "\r", "\x7f", "\x08",
)  # fmt: skip
HOSTILE = [
    "../../../etc/passwd", "/etc/passwd", "..", "a/b", "a\\b", "C:\\x", "~root", "%2e%2e%2f",
    "\x00", "'; drop view answers; --", '"', "'", "`", "$$", "\n", "a" * 5000, "[red]x[/red]",
    ":smile:", "<script>alert(1)</script>", "![x](http://127.0.0.1/x)", "CON", ".", " ", "*", "?",
    "\u2028", *CONTROLS,
]  # fmt: skip


def is_clean(text: str) -> bool:
    return all(char in "\n\t" or char.isprintable() for char in text)


def test_control_characters_are_shown_not_sent(capsys: pytest.CaptureFixture[str]) -> None:
    for text in CONTROLS:
        print_line(f"before {text} after")
    out, _ = capsys.readouterr()
    assert is_clean(out) and out.count("before") == out.count("after") == len(CONTROLS)
    assert printable("\x1b[2J\x9b\u202e\ud800") == r"\x1b[2J\x9b\u202e\ud800"
    clean = "tab\tnew\nline é 中文 👩‍👧 שלום"
    assert printable(clean) == clean


def test_cells_hold_no_markup_and_no_controls() -> None:
    (_, _, line) = markdown([Table([{"a": "[red]x :smile: [/]"}])]).splitlines()
    assert line == "| [red]x :smile: [/] |"
    for text in HOSTILE:
        table = Table([{"name": text, "n": 1}, {"name": "b", "n": 2}])
        head, _, line, _ = markdown([table]).splitlines()
        assert is_clean(line) and line.count(" | ") == head.count(" | ")


def test_json_is_exact_and_clean(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"texts": HOSTILE, "odd": "\ud800"})
    out, _ = capsys.readouterr()
    assert is_clean(out)
    assert json.loads(out) == {"texts": HOSTILE, "odd": "\ud800"}


def test_report_md_runs_nothing() -> None:
    line = "| <img src=x onerror=alert(1)> | ![x](http://h/x) | [1.0..2.0] / 3 (n=4) |"
    text = report_page([line])
    assert "<" not in text and "](" not in text
    assert "[1.0..2.0] / 3 (n=4)" in text


def test_hostile_ids_stay_in_the_warehouse_and_break_no_view(tmp_path: Path) -> None:
    small = SmallRun(tmp_path)
    documents = [{**document(n), "document_id": text, "title": text}
                 for n, text in enumerate(HOSTILE, 1) if text.strip("\x00 \r\n\u2028")]  # fmt: skip
    names = [str(row["document_id"]) for row in documents]
    questions = [{**question(n, of=n), "document_id": text, "question_id": f"q {text}"}
                 for n, text in enumerate(names, 1)]  # fmt: skip
    write(tmp_path / "corpus", documents, questions)
    before = {path for path in tmp_path.rglob("*") if "warehouse" not in path.parts}
    small.work(*names[:12])
    assert {path for path in tmp_path.rglob("*") if "warehouse" not in path.parts} == before
    files = [path.name for path in (tmp_path / "warehouse").rglob("*") if path.is_file()]
    assert len(files) > 12
    assert all(set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789_.-") for name in files)


@pytest.mark.parametrize("name", ["x'; drop view answers; --", 'a"b', "%s", "é", "a b"])
def test_a_run_of_any_name_is_read(tmp_path: Path, name: str) -> None:
    """Runs are named by folders, which anybody may have renamed."""
    questions = step("questions")
    warehouse = Warehouse(tmp_path)
    warehouse.plan(name, (questions, [chunk(questions, "d1", "q1")]))
    with connect(tmp_path, name) as connection:
        assert query(connection, "select run from all_planned") == [{"run": name}]
        assert query(connection, "select question_id from planned") == [{"question_id": "q1"}]
