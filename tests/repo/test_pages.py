"""Every command of README and docs that needs nothing special runs, in the order of its page, and
prints what the page shows."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from gistmill import plugin
from tests.support.command import DATA, NEEDS_WHOLE, WHOLE_QMSUM, own_process, sql, succeeded
from tests.support.docs.pages import NEEDS, README, blocks, commands, fences, page, pages
from tests.support.fork_server import ForkServer

COMMANDS = {name: commands(page(name)) for name in pages() if commands(page(name))}
# Pages with tables of all of QMSum's validation set, a download: CI runs each on one day of five.
OF_WHOLE_QMSUM = ("docs/report.md", "docs/papers.md")
IS_WHOLE = [*NEEDS_WHOLE, pytest.mark.sampled]
_STARTS = re.compile(r"^\s*(\$ )?(nohup |\S+=\S+ )*(gistmill|make|pip|python|jupyter) ", re.M)


class Outcome(NamedTuple):
    """A page's commands, executed: the folder they ran in, and what each block printed."""

    folder: Path
    outputs: list[str]


def run(block: str, folder: Path, binaries: Path) -> str:
    """What a block of commands prints, with the commands in `binaries`. Whatever terminal the tests
    were started from, what is shown is no terminal's width."""
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block], cwd=folder, timeout=600,
        env={**environment, "PATH": f"{binaries}:{os.environ['PATH']}"},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def without_ray(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a command that starts at once."""
    server = ForkServer(tmp_path_factory.mktemp("command"))
    yield server.bin
    server.end()


@pytest.fixture(scope="module")
def executed(
    tmp_path_factory: pytest.TempPathFactory, without_ray: Path
) -> Callable[[str], Outcome]:
    """A page's outcome by its name; no page runs twice. A page that builds on another begins with a
    copy of that one's folder, others with what a clone has; and QMSum as its authors lay it out,
    where a page reads all of it. README's commands are the real one."""
    done: dict[str, Outcome] = {}

    def outcome(name: str) -> Outcome:
        if name in done:
            return done[name]
        folder = tmp_path_factory.mktemp(Path(name).stem) / "here"
        if built_on := re.match(r"<!-- builds on: (\S+) -->\n", page(name)):
            shutil.copytree(outcome(f"docs/{built_on[1]}").folder, folder, symlinks=True)
        else:
            (folder / "tests").mkdir(parents=True)
            (folder / "tests" / "data").symlink_to(DATA)
            if name in OF_WHOLE_QMSUM:
                corpus = folder / "QMSum" / "data" / "ALL" / "jsonl"
                corpus.mkdir(parents=True)
                (corpus / "val.jsonl").symlink_to(WHOLE_QMSUM)
        binaries = Path(sys.executable).parent if name == README else without_ray
        outputs = [run(command.code, folder, binaries) for command in COMMANDS[name]]
        done[name] = Outcome(folder, outputs)
        return done[name]

    return outcome


@pytest.mark.slow
@pytest.mark.timeout(2400)
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=IS_WHOLE if n in OF_WHOLE_QMSUM else ()) for n in COMMANDS]
)
def test_a_pages_commands_run_and_print_what_it_shows(
    executed: Callable[[str], Outcome], name: str
) -> None:
    """Each command prints something, and all that the page shows of it; `...` stands for lines."""
    for command, output in zip(COMMANDS[name], executed(name).outputs, strict=True):
        assert output.strip(), command.code
        for shown in command.printed:
            lines = {line for line in shown.splitlines() if line.strip() and line[:3] != "```"}
            assert lines - {"...", *output.splitlines()} == set(), command.code


@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_the_sql_of_the_means_is_the_reports(
    executed: Callable[[str], Outcome], without_ray: Path
) -> None:
    (query,) = [block for block in blocks("docs/sql.md", "sh") if "from measures" in block]
    folder = executed("docs/sql.md").folder
    rows = json.loads(run(query.rstrip() + " --json", folder, without_ray))
    report = json.loads(run("gistmill report --json", folder, without_ray))
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


def test_commands_that_run_elsewhere_are_ours() -> None:
    """Of what is not run here the verb, at least, is one of the command's."""
    verbs = set(re.findall(r"^  (\w+) ", succeeded(own_process("--help")), re.MULTILINE))
    shown = [fence.code for name in pages() for fence in fences(page(name)) if fence.title]
    found = {v for code in shown for v in re.findall(r"^(?:nohup )?gistmill (\w+)", code, re.M)}
    assert {"run", "submit", "bench"} <= found <= verbs


def test_the_page_of_plugins_explains_each_name() -> None:
    section = page("docs/extending.md").split("\n## The contract\n")[1]
    cells = re.findall(r"^\| (`.+?`) \|", section, re.MULTILINE)
    explained = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    assert sorted(explained) == sorted(plugin.__all__)


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
    where = f"warehouse={tmp_path / 'warehouse'}"
    done = json.loads(succeeded(own_process("run", "experiment=demo", *words, where, "--json")))
    names = [row["memory"] for row in done["report"]["memories"]]
    assert names == ["shared", "paginate(kind=uniform,words=800)"]
    query = "select distinct used from lookups where method = 'first_pages'"
    assert sql(tmp_path / "warehouse", query) == [{"used": [0, 1, 2]}]
