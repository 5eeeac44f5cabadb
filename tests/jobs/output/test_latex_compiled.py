"""LaTeX compiles the tables, whatever is in them."""

import subprocess
from pathlib import Path

import pytest

from jobs.config.options import ReadOptions
from jobs.export.export_run import TABLE_FORMATS
from tests.jobs.output.test_terminal import report as of_many_methods

HOSTILE = '\\input{x} $a$ & 50% #1 _b^c~d {e} <f|g> "h" `i\' --- [j] *k'


@pytest.mark.latex
@pytest.mark.parametrize(
    ("intervals", "options"),
    [(False, {}), (True, {"caption": HOSTILE}), (True, {"names": "canonical"})],
)
def test_a_report_compiles(tmp_path: Path, intervals: bool, options: dict[str, str]) -> None:
    """24 methods with long names, whose means have small n; those that pdfLaTeX has letters for."""
    made = of_many_methods()
    rows = tuple(row for row in made.rows if row.method.isascii())
    rows = (*rows, type(made.rows[0])(HOSTILE, None, rows[0].means, rows[0].counts))
    report = type(made)(**{**vars(made), "rows": rows})
    text = TABLE_FORMATS["latex"](report, ReadOptions(**options), intervals)  # type: ignore[arg-type]
    (tmp_path / "t.tex").write_text(
        "\\documentclass{article}\n\\usepackage{booktabs}\n"
        f"\\begin{{document}}\n{text}\n\\end{{document}}\n"
    )
    words = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]
