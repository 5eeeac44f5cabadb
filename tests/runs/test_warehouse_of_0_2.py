"""A warehouse that version 0.2 made (tests/data/warehouse_0_2.sh): every verb reads it, its runs go
on, and those that used what is gone are refused."""

import re
import tarfile
from pathlib import Path

import pytest

from tests.support.command import DATA, ROOT, gistmill, refused, sql, sql_values, succeed

READING = (
    "ls", "status run=half", "report run=half", "cite run=demo", "trace meeting-02 run=demo",
    "show orchard_coop_meeting run=demo", "compare closed_book bm25(top_k=1) run=demo", "verify",
)  # fmt: skip


def unpacked(folder: Path) -> Path:
    with tarfile.open(DATA / "warehouse_0_2.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    for settings in folder.glob("warehouse/runs/*/config.yaml"):  # the clone that made it is gone
        settings.write_text(settings.read_text().replace("/tmp/gistmill/", f"{ROOT}/"))
    return folder / "warehouse"


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked(tmp_path_factory.mktemp("old"))


@pytest.mark.parametrize("words", READING)
def test_verbs_read_it(old: Path, words: str) -> None:
    assert succeed(*words.split(), f"warehouse={old}")


@pytest.mark.parametrize("run", ["demo", "german", "corrected"])
def test_a_report_has_the_numbers_that_0_2_printed(old: Path, run: str) -> None:
    before = (old / "runs" / run / "report.md").read_text()
    now = succeed("report", f"run={run}", f"warehouse={old}")
    assert scores(now) == scores(before)


def scores(report: str) -> dict[str, dict[str, str]]:
    """The cells of a report's first table, by method and column, without scores against the
    references before corrections, which are gone."""
    (table,) = re.findall(r"(\| method .*?)\n\n", report, re.DOTALL)[:1]
    head, _, *rows = (re.split(r" *\| *", line.strip("| ")) for line in table.splitlines())
    return {
        name: {key: cell for key, cell in zip(head[1:], cells, strict=True)
               if not key.endswith("_original")}
        for name, *cells in rows
    }  # fmt: skip


def test_a_page_is_written(old: Path, tmp_path: Path) -> None:
    succeed("report", "run=demo", f"warehouse={old}", f"html={tmp_path / 'page.html'}")
    assert (tmp_path / "page.html").stat().st_size > 50_000


def test_corrected_questions_are_as_they_were_asked(old: Path) -> None:
    query = 'select question, "references" from questions order by all'
    assert sql_values(old, query, "run=corrected") == [
        ("What broke in May?", ["The sluice"]),
        ("Who waited for flour?", ["The baker waited two nights"]),
    ]


def test_a_run_goes_on_where_it_was_killed(tmp_path: Path) -> None:
    warehouse = unpacked(tmp_path)
    files = {file: file.read_bytes() for file in warehouse.glob("tables/*/*/*.parquet")}
    query = "select unit, request_sha, started_at from calls"
    calls = sql(warehouse, query, "run=half")
    assert len(calls) >= 50
    succeed("run", "experiment=demo", "run=half", "rater=none", "memory=uniform",
            f"warehouse={warehouse}")  # fmt: skip
    assert {file: file.read_bytes() for file in files} == files
    assert [call for call in sql(warehouse, query, "run=half") if call in calls] == calls
    answered = "select count(*) from answers where problem is null"
    assert sql_values(warehouse, answered, "run=half") == [(300,)]


def test_a_run_gains_a_rater_and_is_compacted_and_removed(tmp_path: Path) -> None:
    folder = unpacked(tmp_path)
    succeed("rate", "add", "run=demo", f"warehouse={folder}", "rater=extractive")
    succeed("gc", f"warehouse={folder}")
    assert not (folder / "checked.json").exists() and not (folder / "readers").exists()
    assert len(sql(folder, "from answers", "run=demo")) == 90
    succeed("rm", "run=demo", f"warehouse={folder}", "--yes")
    listed = succeed("ls", f"warehouse={folder}")
    assert "demo" not in re.findall(r"^\| (\w+) ", listed, re.MULTILINE)[:5]


@pytest.mark.parametrize(
    ("run", "names"),
    [("corrected", "corpus.corrections"), ("german", "german"), ("batch", "batch")],
)
def test_what_used_something_that_is_gone_is_not_continued(old: Path, run: str, names: str) -> None:
    assert names in refused("retry", f"run={run}", f"warehouse={old}")
    assert gistmill("sql", "from steps", f"run={run}", f"warehouse={old}").returncode == 0
