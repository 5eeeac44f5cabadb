"""What plugins may import: `gistmill.plugin` alone, whose names docs/extending.md explains. Loading
them brings in neither the command, Ray nor scipy."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import gistmill
from gistmill import plugin
from tests.support.command import ROOT
from tests.support.docs.pages import blocks, page

OURS = ("pipeline", "stages", "jobs", "gistmill", "benchmarks")
PUBLIC = {"gistmill", "gistmill.plugin", "gistmill.testing"}
MOST_NAMES = 50
HEAVY = ("jobs", "ray", "scipy")


def imported(source: str) -> set[str]:
    """The modules of ours that a source imports from."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and not node.level:
            found.add(node.module or "")
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {module for module in found if module.split(".")[0] in OURS}


def sources() -> Iterator[Any]:
    """Our examples and templates of plugins, contrib's, those of tests, the blocks of the page."""
    files = [
        *(ROOT / "docs" / "examples").rglob("*.py"),
        *(ROOT / "contrib").rglob("*.py"),
        *(ROOT / "jobs" / "plugin" / "templates").rglob("*.py.txt"),
        *(ROOT / "tests" / "support").glob("*_plugin/*.py"),
    ]
    for file in files:
        yield pytest.param(file.read_text(), id=file.relative_to(ROOT).as_posix())
    for code in blocks("docs/extending.md", "python"):
        yield pytest.param(code, id=code.splitlines()[0])


@pytest.mark.parametrize("source", [*sources()])
def test_plugins_import_the_public_modules_alone(source: str) -> None:
    assert imported(source) <= PUBLIC


def test_the_page_explains_each_name() -> None:
    section = page("docs/extending.md").split("\n## The contract\n")[1]
    cells = re.findall(r"^\| (`.+?`) \|", section, re.MULTILINE)
    explained = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    assert sorted(explained) == sorted(plugin.__all__)
    assert len(plugin.__all__) <= MOST_NAMES


def test_importing_it_loads_no_command() -> None:
    code = "import json, sys, gistmill.plugin; print(json.dumps([*sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True)
    loaded = {module.split(".")[0] for module in json.loads(done.stdout)}
    assert not loaded.intersection(HEAVY) and "stages" in loaded


def test_the_names_of_the_library_are_there() -> None:
    assert all(getattr(gistmill, name) is not None for name in gistmill.__all__)
    assert dir(gistmill) == sorted(gistmill.__all__)
    assert all((ROOT / name / "py.typed").is_file() for name in OURS[:4]), "types are checked"
    with pytest.raises(AttributeError, match="no attribute 'runn'"):
        gistmill.runn  # type: ignore[attr-defined]  # noqa: B018
