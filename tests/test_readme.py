"""Every `sh` block of the README runs, in its order, and its tables are those the runs print."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command import DATA, QMSUM, ROOT, own_process, sql, succeeded

README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where it all runs: it has QMSum as its authors lay it out, and LongMemEval's oracle file."""
    folder = tmp_path_factory.mktemp("readme")
    corpus = folder / "QMSum" / "data" / "ALL" / "jsonl"
    corpus.mkdir(parents=True)
    (corpus / "val.jsonl").symlink_to(QMSUM)
    oracle = DATA / "longmemeval" / "longmemeval_oracle_16.json"
    (folder / "longmemeval_oracle.json").symlink_to(oracle)
    return folder


@pytest.fixture(scope="module")
def outputs(folder: Path) -> list[str]:
    """What each block prints."""
    return [_run(block, folder) for block in BLOCKS]


def _run(block: str, folder: Path) -> str:
    """Whatever terminal the tests were started from, what is shown is no terminal's width."""
    binaries = str(Path(sys.executable).parent)
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block],
        cwd=folder,
        env={**environment, "PATH": f"{binaries}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_every_command_runs_and_prints_something(outputs: list[str]) -> None:
    assert len(outputs) >= 10
    for block, output in zip(BLOCKS, outputs, strict=True):
        assert output.strip(), block


@pytest.mark.slow
@pytest.mark.parametrize("experiment", ["qmsum", "readagent_qmsum"])
def test_the_table_is_what_the_command_prints(outputs: list[str], experiment: str) -> None:
    mark = f"<!-- table: {experiment} -->\n(.*?)<!-- end of table -->"
    shown = re.search(mark, README, re.DOTALL)
    assert shown
    lines = [line for line in shown[1].splitlines() if line.strip()]
    assert len(lines) > 20
    runs = zip(BLOCKS, outputs, strict=True)
    (output,) = (out for block, out in runs if f"experiment={experiment} " in block)
    assert set(lines) <= set(output.splitlines())


@pytest.mark.slow
def test_the_comparison_is_what_the_command_prints(outputs: list[str]) -> None:
    """But for the hint, which names a run."""
    shown = re.search("<!-- comparison -->\n(.*?)<!-- end of comparison -->", README, re.DOTALL)
    assert shown
    lines = [line for line in shown[1].splitlines() if line.strip() not in ("", "```")]
    runs = zip(BLOCKS, outputs, strict=True)
    (output,) = (out for block, out in runs if "compare 'bm25" in block)
    printed = [line for line in output.splitlines() if line.strip()]
    assert printed[:-1] == lines
    assert printed[-1].startswith("Look at one: gistmill trace meeting-01 run=")


@pytest.mark.slow
def test_the_gist_beside_its_page_is_what_the_command_prints(outputs: list[str]) -> None:
    (shown,) = re.findall(r"^\$ gistmill show tide_.*?\n\n(.*?)^\.\.\.$", README, re.S | re.M)
    assert len(shown.splitlines()) > 8
    runs = zip(BLOCKS, outputs, strict=True)
    (output,) = (out for block, out in runs if "show tide_mill_handbook" in block)
    assert shown in output


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


def test_the_methods_that_it_adds_run(tmp_path: Path) -> None:
    """Its YAML of a method with its own memory, and its class with a YAML as it says."""
    (text,) = re.findall(r"^```yaml\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
    blocks = re.findall(r"^```python\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
    (code,) = [block for block in blocks if "class FirstPages" in block]
    methods = tmp_path / "my_plugin" / "conf" / "method"
    methods.mkdir(parents=True)
    (methods / "long_pages.yaml").write_text(text)
    (methods.parents[1] / "first_pages.py").write_text(code)
    stages = re.findall(r"`((?:look_up|answer): \{.*?\})`", README)
    assert len(stages) == 2
    (methods / "first_pages.yaml").write_text(
        "arguments: {}\nstages:\n" + "".join(f"  {stage}\n" for stage in stages)
    )
    words = ("methods=long_pages,first_pages", f"plugins={methods.parents[1]}", "limit=1")
    made = f"warehouse={tmp_path / 'warehouse'}"
    report = json.loads(succeeded(own_process("run", "experiment=demo", *words, made, "--json")))[
        "report"
    ]
    assert [row["memory"] for row in report["memories"]] == [
        "shared",
        "paginate(kind=uniform,words=800)",
    ]
    used = sql(
        tmp_path / "warehouse", "select distinct used from lookups where method = 'first_pages'"
    )
    assert [row["used"] for row in used] == [[0, 1, 2]]
