"""A report in a terminal: its headline, and its parts by name."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len

from jobs.output.terminal import fitted_to_terminal
from jobs.report.render import headline_parts
from jobs.statistics.means import Mean
from tests.jobs.output.test_terminal import report
from tests.support.command import gistmill, in_terminal, refused, sql, succeed
from tests.support.docs.pages import blocks as blocks_of
from tests.support.runs.finished_run import FinishedRun

TEN = replace(report(), main=("rouge1_stem",), rows=report().rows[:10])


def test_a_screen_has_scores_intervals_and_how_much_was_answered() -> None:
    first = replace(
        TEN.rows[0],
        counts={**TEN.rows[0].counts, "answered": 200},
        means={**TEN.rows[0].means, "rouge1_stem": Mean(20.0, 272, 27.2, 200, 18.4, 21.6)},
        best=("rouge1_stem",),
    )
    text = fitted_to_terminal(headline_parts(replace(TEN, rows=(first, *TEN.rows[1:]))), 80)
    assert max(map(cell_len, text.splitlines())) <= 80
    head, _, *rows = text[text.index("method ") :].splitlines()
    assert head.split() == ["method", "answered", "rouge1_stem", "rouge2_stem"]
    assert " 200/272 " in rows[0] and " 272/272 " in rows[1]
    assert " 20.0 [18.4, 21.6]* " in rows[0] and rows[1].split()[-1] == "4.0"
    assert "[..]: 95% interval over documents." in text and "fewer than 10" not in text


@pytest.mark.slow
def test_parts_have_names(tmp_path: Path) -> None:
    warehouse = FinishedRun(tmp_path).warehouse
    folder = f"warehouse={warehouse}"
    whole = succeed("report", folder)
    groups = ("scores", "reading", "cost")
    parts = {name: succeed("report", folder, f"only={name}") for name in groups}
    headings = {
        name: {cell.strip() for line in text.splitlines() if line.startswith("| method")
               for cell in line.split("|")} for name, text in parts.items()
    }  # fmt: skip
    assert "squad_em" in headings["scores"] and "squad_em" not in headings["reading"]
    assert "CR" in headings["reading"] and "CR" not in headings["scores"]
    assert "tokens" in headings["cost"] and not {"CR", "squad_em"} & headings["cost"]
    tables = {line for line in whole.splitlines() if line.startswith("| method")}
    assert len(tables) >= 2 and "| stage" in parts["cost"] and "| memory" in parts["reading"]
    assert refused("report", folder, "only=money") == (
        "only=money: write only=scores, reading, cost, one of them, without columns="
    )
    assert refused("report", folder, "only=cost", "columns=n,CR").startswith("only=cost:")
    assert refused("report", folder, "--corpus", "only=cost").startswith("only: ")


@pytest.mark.slow
def test_the_page_shows_what_a_terminal_of_80_columns_gets(tmp_path: Path) -> None:
    (shown,) = blocks_of("docs/report.md", "console")
    where = f"warehouse={tmp_path}"
    done = gistmill("run", "experiment=demo", "engine=extractive", "run=demo", where)
    assert done.returncode == 0, done.stderr
    assert in_terminal(80, "report", where) == shown
    assert len(shown.splitlines()) <= 24


@pytest.mark.slow
def test_a_terminal_gets_the_headline_and_all_of_it_if_asked(tmp_path: Path) -> None:
    warehouse = FinishedRun(tmp_path).warehouse
    folder = f"warehouse={warehouse}"
    shown = in_terminal(80, "report", folder)
    assert len(shown.splitlines()) <= 24 and "More: gistmill report --all" in shown
    whole = in_terminal(80, "report", folder, "--all")
    assert "prompt" in whole and len(whole) > 2 * len(shown)
    chosen = in_terminal(80, "report", folder, "columns=tokens")
    (counted,) = sql(warehouse, "select count(*) as n from answers")
    assert re.search(rf"^readagent_p.* {counted['n']} ", chosen, re.M) and "rouge" not in chosen
    as_json = json.loads(in_terminal(80, "report", folder, "--json"))
    assert as_json == json.loads(succeed("report", folder, "--json"))
