"""An engine, a metric, a judge and a corpus format of one plugin, in one run: its values in SQL, the
report, its page and its table for a paper; and what a changed source makes anew."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support import command
from tests.support.command import ROOT, one_line, own_process, succeed, succeeded

PLUGIN = ROOT / "tests" / "support" / "brought_plugin"
LINES = [  # the engine answers "Rivers rise.": the first begins with its R
    "The river rose in spring.\tWhat did the river do?\tRise.",
    "The mill stood still.\tWhat did the mill do?\tIt stood.",
]
COUNTED = "select stage, count(*) as n from all_calls group by stage order by stage"


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    (tmp_path / "lines.tsv").write_text("\n".join(LINES))
    without = shutil.ignore_patterns("__pycache__")
    return shutil.copytree(PLUGIN, tmp_path / "brought_plugin", ignore=without)


def words(folder: Path, *more: str) -> list[str]:
    return [
        f"plugins={folder / 'brought_plugin'}", "corpus=lines", "engine=echo", "methods=full_text",
        f"corpus.path={folder / 'lines.tsv'}", f"warehouse={folder / 'warehouse'}", "run=own", *more,
    ]  # fmt: skip


def measured(folder: Path) -> dict[str, list[float]]:
    """The values of each measure that the plugin makes, by question, as SQL without it has them."""
    rows: list[dict[str, Any]] = command.sql(
        folder / "warehouse",
        "select measure, value from measures where measure in ('first_letter', 'fluent') "
        "order by measure, question_id",
    )
    found: dict[str, list[float]] = {}
    for row in rows:
        found.setdefault(row["measure"], []).append(row["value"])
    return found


def test_all_of_it_in_one_run(plugin: Path, tmp_path: Path) -> None:
    succeeded(own_process("run", *words(tmp_path)))
    assert measured(tmp_path) == {"first_letter": [100, 0], "fluent": [100, 100]}
    assert command.sql(tmp_path / "warehouse", "select distinct engine from calls") == [
        {"engine": "echo"}
    ]
    warehouse = f"warehouse={tmp_path / 'warehouse'}"
    (row,) = json.loads(succeed("report", warehouse, "--json"))["rows"]
    shown = succeed("report", warehouse, "--markdown")
    assert "first_letter" in shown and "fluent" in shown and "accuracy" not in shown
    assert row["method"] == "full_text"
    page = tmp_path / "page.html"
    succeed("report", warehouse, "--html", str(page))
    assert "first_letter" in page.read_text() and "fluent" in page.read_text()
    table = tmp_path / "table.tex"
    succeed("export", "report", warehouse, "format=latex", f"to={table}")
    assert "first" in table.read_text() and "fluent" in table.read_text()
