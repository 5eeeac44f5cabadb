"""What plugins may import: `gistmill.plugin` alone, whose names docs/extending.md explains. They
are typed, and loading them brings in neither the command, Ray nor scipy."""

import ast
import inspect
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
    """Our examples and templates of plugins, those of tests, and the blocks of the page."""
    files = [
        *(ROOT / "docs" / "examples").rglob("*.py"),
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
    section = page("docs/extending.md").split("\n## gistmill.plugin\n")[1]
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
    with pytest.raises(AttributeError, match="no attribute 'runn'"):
        gistmill.runn  # type: ignore[attr-defined]  # noqa: B018


def untyped(one: Any) -> set[str]:
    """The functions among what is public of a class, its bases of ours, or a function, whose
    parameters and result are not all annotated."""
    if not inspect.isclass(one):
        return {one.__qualname__} if inspect.isfunction(one) and _lacks(one) else set()
    own = [
        base for base in inspect.getmro(one) if base.__module__.split(".")[0] in (*OURS, "tests")
    ]
    members = [
        getattr(member, "fget", None) or getattr(member, "__func__", member)
        for base in own
        for name, member in vars(base).items()
        if not name.startswith("_") or name == "__call__"
    ]
    return {f.__qualname__ for f in members if inspect.isfunction(f) and _lacks(f)}


def _lacks(function: Any) -> bool:
    parameters = [*inspect.signature(function).parameters.values()]
    own = parameters[1:] if parameters and parameters[0].name in ("self", "cls") else parameters
    empty = inspect.Parameter.empty
    return "return" not in function.__annotations__ or any(p.annotation is empty for p in own)


@pytest.mark.parametrize("name", plugin.__all__)
def test_each_name_is_typed(name: str) -> None:
    assert untyped(getattr(plugin, name)) == set()


class Half:
    """Of its functions one is typed."""

    def typed(self, number: int) -> int:
        return number

    def half(self, number) -> int:  # type: ignore[no-untyped-def]  # noqa: ANN001
        return int(number)


def test_what_is_not_typed_is_found() -> None:
    assert untyped(Half) == untyped(Half.half) == {"Half.half"}
