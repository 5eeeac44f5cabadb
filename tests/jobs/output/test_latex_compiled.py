"""LaTeX compiles the tables without an overfull box, and they are no wider than we say."""

import random
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from upath import UPath

from jobs.config.options import ReadOptions
from jobs.export.export_report import latex_report
from jobs.output.latex_text import ems, escaped
from jobs.report.report import Report, make_report
from tests.jobs.output.test_terminal import report as of_many_methods
from tests.support.runs.hand_run import HandRun

pytestmark = pytest.mark.latex

HOSTILE = '\\input{x} $a$ & 50% #1 _b^c~d {e} <f|g> "h" `i\' --- [j] *k'
Compiled = Callable[[str, str], str]


@pytest.fixture
def compiled(tmp_path: Path) -> Compiled:
    """Makes a PDF of a text in the class article with options, and gives the log; raises where
    LaTeX finds an error."""

    def compile_text(text: str, options: str) -> str:
        (tmp_path / "t.tex").write_text(
            f"\\documentclass[{options}]{{article}}\n\\usepackage{{booktabs}}\n"
            f"\\begin{{document}}\n{text}\n\\end{{document}}\n"
        )
        words = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
        for _ in range(2):  # for references
            done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
            assert done.returncode == 0, done.stdout[-2000:]
        return done.stdout

    return compile_text


def faults(log: str) -> list[str]:
    return re.findall(r"^(?:Overfull|LaTeX Warning: (?:Reference|Label|There were)).*$", log, re.M)


def tables(report: Report, intervals: bool = False, **options: object) -> str:
    return latex_report(report, ReadOptions(**options), intervals, warn=lambda line: None)  # type: ignore[arg-type]


def many(by: Sequence[str | None] = (None,), num_rows: int = 30) -> Report:
    """24 methods with long names, whose means have small n; those that pdfLaTeX has letters for."""
    made = of_many_methods()
    rows = [row for row in made.rows if row.method.isascii()]
    grouped = [type(row)(row.method, group, row.means, row.counts) for group in by for row in rows]
    return type(made)(**{**vars(made), "rows": tuple(grouped[:num_rows])})


@pytest.mark.parametrize("options", ["10pt", "11pt", "12pt", "10pt,a4paper"])
def test_a_wide_report_has_no_overfull_box(compiled: Compiled, options: str) -> None:
    groups = ("a short one", "a group of questions with a rather long name", "x" * 60)
    text = "\n".join([
        tables(many()), tables(many(), intervals=True, label="tab:2"),
        tables(many(groups), intervals=True, label="tab:3"),
        tables(many(), marks="stars", label="tab:4", caption=HOSTILE),
        tables(many(), names="canonical", label="tab:5"),
    ])  # fmt: skip
    log = compiled(text, options)
    assert faults(log) == []
    assert text.count(r"\begin{table}") > 10


def test_a_narrow_report_is_one_table(compiled: Compiled) -> None:
    text = tables(many(num_rows=3), columns="rouge1_stem,LR-1")
    assert text.count(r"\begin{table}") == 1 and "wider than" not in text
    assert faults(compiled(text, "10pt")) == []


def test_a_column_of_two_is_narrower(compiled: Compiled) -> None:
    text = tables(many(), width=229.5)
    assert faults(compiled(text, "10pt,twocolumn")) == []
    assert faults(compiled(tables(many(), width=345), "10pt,twocolumn")) != [], "would be seen"


def test_the_hand_run_has_none(compiled: Compiled, hand: HandRun) -> None:
    report = make_report(ReadOptions(UPath(hand.warehouse), "hand"))
    assert faults(compiled(tables(report), "10pt")) == []
    assert faults(compiled(tables(report, intervals=True), "10pt")) == []


def widths(log: str) -> Mapping[int, float]:
    found = re.findall(r"^WIDTH (\d+) ([\d.]+)pt$", log, re.M)
    return {int(place): float(width) for place, width in found}


def test_no_text_is_wider_than_we_say(compiled: Compiled) -> None:
    """Of the same size; and little is added on top: at most a fifth, of texts of some length."""
    draw = random.Random(1)
    signs = [chr(code) for code in range(33, 127)]
    names = [row.method for row in many().rows]
    texts = [*signs, HOSTILE, *names, *("".join(draw.choices(signs, k=30)) for _ in range(50))]
    boxes = "".join(
        f"\\sbox0{{\\small {escaped(text)}}}\\typeout{{WIDTH {place} \\the\\wd0}}\n"
        for place, text in enumerate(texts)
    )
    measured = widths(compiled(f"x\n{boxes}", "10pt"))
    assert len(measured) == len(texts)
    assert [
        texts[place] for place, width in measured.items() if width > 9 * ems(texts[place])
    ] == []
    long = {place: width for place, width in measured.items() if len(texts[place]) > 12}
    assert all(9 * ems(texts[place]) < 1.2 * width for place, width in long.items())
