"""Every command of README and docs that needs nothing special runs, in the order of its page, and
prints what the page shows."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.command import DATA, NEEDS_WHOLE, WHOLE, own_process, sql, succeeded
from tests.support.pages import NEEDS, base, blocks, commands, fences, missing, page, pages

# Pages with tables of all of QMSum's validation set.
OF_WHOLE_QMSUM = ("docs/report.md", "docs/papers.md")
COMMANDS = {name: commands(page(name)) for name in pages() if commands(page(name))}
_STARTS = re.compile(r"^\s*(\$ )?(nohup |\S+=\S+ )*(gistmill|make|pip|python|jupyter) ", re.M)


class Outcome(NamedTuple):
    """A page's commands, executed: the folder they ran in, and what each block printed."""

    folder: Path
    outputs: list[str]


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Outcome]:
    """A page's outcome by its name; a page that builds on another begins with a copy of its
    folder. No page runs twice."""
    done: dict[str, Outcome] = {}

    def outcome(name: str) -> Outcome:
        if name not in done:
            folder = tmp_path_factory.mktemp(Path(name).stem) / "here"
            before = base(page(name))
            if before:
                shutil.copytree(outcome(before).folder, folder, symlinks=True)
            else:
                _lay_out(folder, name)
            done[name] = Outcome(folder, [_run(one.code, folder) for one in COMMANDS[name]])
        return done[name]

    return outcome


def _lay_out(folder: Path, name: str) -> None:
    """What a clone has; and QMSum as its authors lay it out, where a page reads all of it."""
    (folder / "tests").mkdir(parents=True)
    (folder / "tests" / "data").symlink_to(DATA)
    if name in OF_WHOLE_QMSUM:
        corpus = folder / "QMSum" / "data" / "ALL" / "jsonl"
        corpus.mkdir(parents=True)
        (corpus / "val.jsonl").symlink_to(WHOLE / "qmsum" / "val.jsonl")


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
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=NEEDS_WHOLE) if n in OF_WHOLE_QMSUM else n for n in COMMANDS],
)
def test_a_pages_commands_run_and_print_what_it_shows(
    executed: Callable[[str], Outcome], name: str
) -> None:
    for command, output in zip(COMMANDS[name], executed(name).outputs, strict=True):
        assert output.strip(), command.code
        for shown in command.printed:
            assert missing(shown, output) == [], command.code


@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_the_comparison_is_all_that_the_command_prints(
    executed: Callable[[str], Outcome],
) -> None:
    """But for the hint, which names a run."""
    name = "docs/comparing.md"
    (shown,) = COMMANDS[name][0].printed
    lines = [line for line in shown.splitlines() if line.strip() not in ("", "```")]
    printed = [line for line in executed(name).outputs[0].splitlines() if line.strip()]
    assert printed[:-1] == lines
    assert printed[-1].startswith("Look at one: gistmill trace meeting-01 run=")


@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_the_sql_of_the_means_is_the_reports(executed: Callable[[str], Outcome]) -> None:
    (query,) = [block for block in blocks("docs/sql.md", "sh") if "from measures" in block]
    folder = executed("docs/sql.md").folder
    rows = json.loads(_run(query.rstrip() + " --json", folder))
    report = json.loads(_run("gistmill report --json", folder))
    means = {row["method"]: row["means"] for row in report["rows"]}
    assert len(rows) > 50
    for row in rows:
        mean = means[row["method"]][row["measure"]]
        assert row["mean"] == pytest.approx(mean["mean"])
        assert row["answered_mean"] == pytest.approx(mean["answered_mean"])
        assert row["n"] == mean["n"]


@pytest.mark.parametrize("name", pages())
def test_every_command_runs_or_says_what_it_needs(name: str) -> None:
    for fence in fences(page(name)):
        assert not fence.title or fence.title in NEEDS, fence.title
        if _STARTS.search(fence.code) and fence.language != "python":
            assert fence.language == "sh", f"no test reads this:\n{fence.code}"
    unmarked = [fence for fence in fences(page(name)) if fence.language == "sh" and not fence.title]
    assert len(unmarked) == len(COMMANDS.get(name, []))
    assert page(name).count("```") == 2 * len(fences(page(name))), "a fence that is not understood"


def test_the_parts_of_a_page_are_told_apart() -> None:
    text = (
        "```sh\na\n```\n```text\nx\n...\ny\n```\n"
        '```sh title="needs a GPU"\nb\n```\n<!-- printed -->\n| z |\n<!-- end of printed -->\n'
        "- c:\n\n  ```sh\n  c\n  ```\n"
    )
    first, second = commands(text)
    assert (first.code, first.printed) == ("a\n", ["x\n...\ny\n", "| z |\n"])
    assert (second.code.strip(), second.printed) == ("c", [])
    assert missing("x\n...\ny\n", "x\n1\ny\n") == []
    assert missing("x\n...\ny\n", "x\n1\nyy\n") == ["y"]


def test_pages_build_on_pages_that_do_not_build_on_others() -> None:
    found = {name: base(page(name)) for name in COMMANDS}
    assert sum(before is not None for before in found.values()) >= 4
    for before in filter(None, found.values()):
        assert before in COMMANDS and found[before] is None


def test_commands_that_run_elsewhere_are_ours() -> None:
    """Of what is not run here the verb, at least, is one of the command's."""
    verbs = set(re.findall(r"^│ (\w+) ", succeeded(own_process("--help")), re.MULTILINE))
    shown = [fence.code for name in pages() for fence in fences(page(name)) if fence.title]
    found = {
        verb for code in shown for verb in re.findall(r"^(?:nohup )?gistmill (\w+)", code, re.M)
    }
    assert {"run", "submit", "bench"} <= found <= verbs


@pytest.mark.slow
def test_the_methods_that_it_adds_run(tmp_path: Path) -> None:
    """The page's YAML of a method with its own memory, and its class with a YAML as it says."""
    name = "docs/extending.md"
    (text,) = blocks(name, "yaml")
    (code,) = [block for block in blocks(name, "python") if "class FirstPages" in block]
    methods = tmp_path / "my_plugin" / "conf" / "method"
    methods.mkdir(parents=True)
    (methods / "long_pages.yaml").write_text(text)
    (methods.parents[1] / "first_pages.py").write_text(code)
    stages = re.findall(r"`((?:look_up|answer): \{.*?\})`", page(name))
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
