"""Every `sh` block of the README runs, in its order, and its table is the one the run prints."""

import json
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
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where it all runs: it has QMSum as its authors lay it out."""
    folder = tmp_path_factory.mktemp("readme")
    corpus = folder / "QMSum" / "data" / "ALL" / "jsonl"
    corpus.mkdir(parents=True)
    (corpus / "val.jsonl").symlink_to(QMSUM)
    return folder


@pytest.fixture(scope="module")
def outputs(folder: Path) -> list[str]:
    """What each block prints."""
    return [_run(block, folder) for block in BLOCKS]


def _run(block: str, folder: Path) -> str:
    binaries = str(Path(sys.executable).parent)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block],
        cwd=folder,
        env={**os.environ, "PATH": f"{binaries}:{os.environ['PATH']}"},
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
    assert set(lines) <= set(outputs[0].splitlines())


@pytest.mark.slow
def test_the_sql_of_the_means_is_the_reports(outputs: list[str], folder: Path) -> None:
    (query,) = [block for block in BLOCKS if "from measures" in block]
    rows = json.loads(_run(query.rstrip() + " --json", folder))
    report = json.loads(_run("gistmill report --json", folder))
    means = {row["method"]: row["means"] for row in report["rows"]}
    assert len(rows) > 50
    for row in rows:
        mean = means[row["method"]][row["measure"]]
        assert row["mean"] == pytest.approx(mean["mean"])
        assert row["answered_mean"] == pytest.approx(mean["answered_mean"])
        assert row["n"] == mean["n"]
