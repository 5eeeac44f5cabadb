"""What docs/extending.md says of the examples: files and lines; and the test that it shows."""

import re
import shutil
from pathlib import Path

from tests.support.docs.pages import blocks, page
from tests.support.fork_server import forked
from tests.support.runs.example_run import EXAMPLES

PAGE = "docs/extending.md"
MOST_FILES, MOST_LINES = 3, 140
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


def test_the_test_that_it_shows_passes(tmp_path: Path) -> None:
    (code,) = [code for code in blocks(PAGE, "python") if "gistmill.testing" in code]
    shutil.copytree(EXAMPLES / "raptor", tmp_path / "raptor")
    (tmp_path / "test_raptor.py").write_text(code)
    pytest = "import sys, pytest; sys.exit(pytest.main(sys.argv[1:]))"
    done = forked("-c", pytest, "-q", "-p", "no:cacheprovider", "test_raptor.py", folder=tmp_path)
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr
