"""Every `sh` block of the README runs, in its order, and its table is the one the run prints."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command import QMSUM, ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What each block prints, all run in one folder that has QMSum as its authors lay it out."""
    folder = tmp_path_factory.mktemp("readme")
    corpus = folder / "QMSum" / "data" / "ALL" / "jsonl"
    corpus.mkdir(parents=True)
    (corpus / "val.jsonl").symlink_to(QMSUM)
    binaries = str(Path(sys.executable).parent)
    environment = {**os.environ, "PATH": f"{binaries}:{os.environ['PATH']}"}
    return [_run(block, folder, environment) for block in BLOCKS]


def _run(block: str, folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_every_command_runs_and_prints_something(outputs: list[str]) -> None:
    assert len(outputs) >= 10
    for block, output in zip(BLOCKS, outputs, strict=True):
        assert output.strip(), block


@pytest.mark.slow
def test_the_table_is_what_the_command_prints(outputs: list[str]) -> None:
    shown = re.search(r"<!-- table: qmsum -->\n(.*?)<!-- end of table -->", README, re.DOTALL)
    assert shown
    lines = [line for line in shown[1].splitlines() if line.strip()]
    assert len(lines) > 20
    (printed,) = [out for out in outputs if "readagent_s(max_pages=6)" in out]
    assert set(lines) <= set(printed.splitlines())
