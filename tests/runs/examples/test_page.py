"""The test that docs/extending.md shows."""

import shutil
from pathlib import Path

from tests.support.docs.pages import blocks
from tests.support.fork_server import forked
from tests.support.runs.example_run import EXAMPLES


def test_the_test_that_it_shows_passes(tmp_path: Path) -> None:
    shown = blocks("docs/extending.md", "python")
    (code,) = [code for code in shown if "gistmill.testing" in code]
    shutil.copytree(EXAMPLES / "raptor", tmp_path / "raptor")
    (tmp_path / "test_raptor.py").write_text(code)
    pytest = "import sys, pytest; sys.exit(pytest.main(sys.argv[1:]))"
    done = forked("-c", pytest, "-q", "-p", "no:cacheprovider", "test_raptor.py", folder=tmp_path)
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr
