"""What docs/extending.md says of the examples: files and lines; and the test that it shows."""

import ast
import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

from tests.support.command import ROOT
from tests.support.docs.pages import blocks, page
from tests.support.runs.example_run import EXAMPLES

PAGE = "docs/extending.md"
MOST_FILES, MOST_LINES = 3, 120
_IMPORTS = re.compile(r"^\| `([\w.]+)` \| ((?:`\w+`(?:, )?)+) \|", re.MULTILINE)
_ROW = re.compile(r"^\| \[\w+\]\(examples/(\w+)/\w+\.py\).*\| (\d+) \| (\d+) \|$", re.MULTILINE)


def files_of(example: Path) -> list[Path]:
    return [f for f in example.rglob("*") if f.is_file() and f.parent.name != "__pycache__"]


def test_the_table_has_their_files_and_lines() -> None:
    found = {name: (int(files), int(lines)) for name, files, lines in _ROW.findall(page(PAGE))}
    examples = [folder for folder in EXAMPLES.iterdir() if folder.name != "__pycache__"]
    counted = {
        folder.name: (len(files), sum(len(file.read_text().splitlines()) for file in files))
        for folder in examples
        if (files := files_of(folder))
    }
    assert found == counted
    assert all(n <= MOST_FILES and lines <= MOST_LINES for n, lines in counted.values())


def imported(file: Path) -> set[tuple[str, str]]:
    """The names that a module takes from gistmill, with their modules."""
    found = [n for n in ast.walk(ast.parse(file.read_text())) if isinstance(n, ast.ImportFrom)]
    return {(n.module, alias.name) for n in found for alias in n.names
            if n.module and n.module.split(".")[0] in ("pipeline", "stages")}  # fmt: skip


def test_they_import_what_the_page_names() -> None:
    tabled = {(module, name) for module, names in _IMPORTS.findall(page(PAGE))
              for name in re.findall(r"`(\w+)`", names)}  # fmt: skip
    assert all(hasattr(import_module(module), name) for module, name in tabled)
    code = "\n".join(blocks(PAGE, "python"))
    examples = set().union(*(imported(file) for file in EXAMPLES.rglob("*.py")))
    elsewhere = {(m, n) for m, n in examples - tabled if f"from {m} import {n}" not in code}
    assert len(examples) > 15 and elsewhere == {("stages.text.languages", "unicode_words")}
    assert all(f"`{name}` of `{module}`" in page(PAGE) for module, name in elsewhere)


def test_the_test_that_it_shows_passes(tmp_path: Path) -> None:
    (code,) = [code for code in blocks(PAGE, "python") if "gistmill.testing" in code]
    shutil.copytree(EXAMPLES / "raptor", tmp_path / "raptor")
    (tmp_path / "test_raptor.py").write_text(code)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_raptor.py"]
    done = subprocess.run(command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)},
                          capture_output=True, text=True, timeout=300)  # fmt: skip
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr
