"""Tables: none is wider than its terminal, and what is left out is named; in LaTeX; of `sql`."""

import json
import random
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len

from jobs.config.options import ReadOptions
from jobs.export.export_run import TABLE_FORMATS
from jobs.output.print_tables import Table
from jobs.output.terminal import fitted_to_terminal
from jobs.report.render import parts_of
from jobs.report.report import Report, Row
from jobs.statistics.statistics import Mean
from pipeline.work.stage import Column
from tests.support.command import succeed
from tests.support.runs.warehouse import Warehouse

WIDTHS = (80, 100, 120, 200)
COLUMNS = (
    Column("cr", "CR", 10, has_interval=False),
    Column("lr_1", "LR-1", 30, more_is_better=True, is_judged=True),
    *(Column(name, name, 40, more_is_better=True) for name in ("rouge1_stem", "rouge2_stem")),
    Column("recall", "recall", 60),
    Column("words", "words read", 80, has_interval=False),
)
METHODS = (
    *(f"bm25(top_k={k})" for k in range(1, 9)),
    *(f"readagent_p(max_pages={k})" for k in range(1, 8)),
    "truncated(keep=first,num_words=6000)", "truncated(keep=last,num_words=6000)",
    "longmemeval(value=round,expansion=facts,join=merge_as_published,retriever=dense,top_k=10,"
    "time_aware=False,reading=con,history=json)",
    "gist_only", "full_text", "closed_book", "constant", "oracle_pages(top_k=3)",
    "memorag(memory=full,memory_fit=refuse,retriever=dense,top_k=3)", "检索方法(页数=三)",
)  # fmt: skip


def mean(value: float, n: int) -> Mean:
    return Mean(value, n, value, n, value - 1, value + 1)


def report() -> Report:
    """25 methods; LR is empty, recall is over fewer answers than the others."""
    draw = random.Random(1)
    rows = []
    for method in METHODS:
        n = 237 if method.startswith("oracle") else 272
        means = {name: mean(draw.uniform(10, 30), n) for name in ("cr", "rouge1_stem", "words")}
        means |= {"rouge2_stem": mean(4.0, n), "recall": mean(draw.uniform(0, 100), 237)}
        counts: dict[str, float | None] = {"n": n, "answered": n, "unscored": None}
        counts |= {"calls": 10**6, "tokens": 10**9}
        rows.append(Row(method, None, means, counts))
    foot = {
        "corpus": "qmsum 0a", "engine": "Qwen/Qwen3-8B", "is_model": True, "family": "qmsum 0b",
        "wording": "ours", "replies": "free", "rater": None, "imported": {}, "commits": ["c"],
        "repeats": 1, "repeat_from": "questions", "without_prompts": [], "other_models": [],
        "versions": {f"package-{i}": "1.2.3" for i in range(12)},
    }  # fmt: skip
    memory = {"memory": "shared", "documents": 35, "words": 9, "pages": 741, "words_per_page": 4.5}
    inputs, measures = {"planned": 9, "not_done": 0}, ("lr_1", "rouge1_stem", "rouge2_stem")
    return Report("night", inputs, COLUMNS, measures, tuple(rows), memory, (memory,), (), foot)


@pytest.mark.parametrize("width", WIDTHS)
def test_25_methods_fit_and_every_value_is_there(width: int) -> None:
    """A long name goes on in further lines; the numbers stand in its first."""
    shown = report()
    text = fitted_to_terminal(parts_of(shown), width)
    assert max(map(cell_len, text.splitlines())) <= width
    for row in shown.rows:
        line = next(line for line in text.splitlines() if line.startswith(row.method[:8])
                    and f" {row.counts['n']} " in line)  # fmt: skip
        numbers = re.findall(r"\d+\.\d", line)
        means = [row.means[name].mean for name in ("cr", "rouge1_stem", "recall", "words")]
        assert {f"{mean:.1f}" for mean in means} <= {*numbers}, line
        text = text.replace(line, "", 1)
    assert "Empty in this run, so not shown: LR-1." in text and f"{10**9}" in text


@pytest.mark.parametrize("width", WIDTHS)
def test_the_last_columns_of_a_wide_table_are_named_below_it(width: int) -> None:
    names = [f"column_{number}" for number in range(30)]
    text = fitted_to_terminal([Table([dict.fromkeys(names, 7)])], width)
    table, line = text.split("\n\n")
    shown = table.splitlines()[0].split()
    assert max(map(len, text.splitlines())) <= width and len(shown) >= width // 11
    left_out = " ".join(line.split()).removeprefix("Too wide to show: ").partition(";")[0]
    assert [*shown, *left_out.split(", ")] == names


def test_columns_that_a_query_names_stay() -> None:
    rows = [{"a": 1, "b": None}]
    assert "b" in fitted_to_terminal([Table(rows, keeps_empty=True)], 80).splitlines()[0]
    assert fitted_to_terminal([Table(rows)], 80).endswith("Empty in this run, so not shown: b.")
    assert fitted_to_terminal([Table([])], 80) == "no rows"


HOSTILE = '\\input{x} $a$ & 50% #1 _b^c~d {e} <f|g> "h" `i\' --- [j] *k'


@pytest.mark.latex
@pytest.mark.parametrize(
    ("intervals", "options"),
    [(False, {}), (True, {"caption": HOSTILE}), (True, {"names": "canonical"})],
)
def test_a_report_compiles(tmp_path: Path, intervals: bool, options: dict[str, str]) -> None:
    """24 methods with long names, whose means have small n; those that pdfLaTeX has letters for."""
    made = report()
    rows = tuple(row for row in made.rows if row.method.isascii())
    made = replace(made, rows=(*rows, replace(rows[0], method=HOSTILE)))
    text = TABLE_FORMATS["latex"](made, ReadOptions(**options), intervals)  # type: ignore[arg-type]
    (tmp_path / "t.tex").write_text(
        "\\documentclass{article}\n\\usepackage{booktabs}\n"
        f"\\begin{{document}}\n{text}\n\\end{{document}}\n"
    )
    words = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]


def test_sql_prints_every_digit_and_json_has_no_nan(tmp_path: Path) -> None:
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is no JSON")

    Warehouse(tmp_path).plan("r")
    query = """select 0.04::double as small, 1234567.125::double as large, 2.0::double as whole,
      'nan'::double as nothing, 0.25 as given, timestamp '2026-11-22 10:00:00.5' as started_at,
      {'a': [1.5, 'inf'::double]} as nested, null as missing"""
    words = ("sql", query, f"warehouse={tmp_path}")
    head, _, row = ([c.strip() for c in line.strip("|").split("|")]
                    for line in succeed(*words).splitlines())  # fmt: skip
    cells = dict(zip(head, row, strict=True))
    assert (cells["small"], cells["large"], cells["whole"]) == ("0.04", "1234567.125", "2.0")
    assert (cells["nothing"], cells["given"], cells["missing"]) == ("nan", "0.25", "-")
    assert cells["started_at"] == "2026-11-22 10:00:00.500000"
    assert json.loads(succeed(*words, "--json"), parse_constant=refuse) == [{
        "small": 0.04, "large": 1234567.125, "whole": 2.0, "nothing": None, "given": 0.25,
        "started_at": "2026-11-22T10:00:00.500000", "nested": {"a": [1.5, None]}, "missing": None,
    }]  # fmt: skip
