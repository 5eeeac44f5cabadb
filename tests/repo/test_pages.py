"""Every command of README and docs that needs nothing special runs, in the order of its page, and
prints what the page shows."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from gistmill import plugin
from tests.support.command import own_process, sql, succeed, succeeded
from tests.support.docs.executed_pages import COMMANDS, OF_WHOLE_QMSUM, Outcome, check, run
from tests.support.docs.pages import NEEDS, blocks, fences, page, pages

_STARTS = re.compile(r"^\s*(\$ )?(nohup |\S+=\S+ )*(gistmill|make|pip|python|jupyter) ", re.M)


@pytest.mark.slow
@pytest.mark.timeout(2400)
@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in OF_WHOLE_QMSUM])
def test_a_pages_commands_run_and_print_what_it_shows(
    executed: Callable[[str], Outcome], name: str
) -> None:
    check(name, executed(name))


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
    verbs = set(re.findall(r"^  (\w+) ", succeed("--help"), re.MULTILINE))
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
