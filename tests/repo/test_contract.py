"""What plugins may import: the list in docs/extending.md is there, typed, and all that our own
examples and templates of plugins import."""

import ast
import importlib
import inspect
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.command import ROOT
from tests.support.docs.pages import blocks, page

OURS = ("pipeline", "stages", "jobs", "gistmill")
ROW = re.compile(r"^\| `([\w.]+)` \| (`\w+`(?:, `\w+`)*) \| (\d+\.\d+) \| \S.* \|$", re.MULTILINE)


class Name(NamedTuple):
    """A row's module, one of its names, and the version since when."""

    module: str
    name: str
    since: str


def contract(text: str) -> list[Name]:
    """The names in the table below the heading `The contract`."""
    section = text.split("\n## The contract\n")[1].split("\n## ")[0]
    found = ROW.findall(section)
    assert len(found) == len(re.findall(r"^\| ", section, re.MULTILINE)) - 1, "a row of other cells"
    return [Name(m, name, since) for m, names, since in found for name in names.split("`")[1::2]]


CONTRACT = contract(page("docs/extending.md"))


def imported(source: str) -> set[tuple[str, str]]:
    """Modules of ours and names that a source imports from them; `import x` is the name ''."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and not node.level:
            found |= {(node.module or "", alias.name) for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {(alias.name, "") for alias in node.names}
    return {(module, name) for module, name in found if module.split(".")[0] in OURS}


def unlisted(source: str) -> set[tuple[str, str]]:
    listed = {(one.module, one.name) for one in CONTRACT} | {(one.module, "") for one in CONTRACT}
    return imported(source) - listed


def sources() -> Iterator[Any]:
    """Our examples and templates of plugins, and the blocks of the page."""
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
def test_plugins_import_the_contract_alone(source: str) -> None:
    assert unlisted(source) == set()


def test_what_is_not_listed_is_found() -> None:
    source = (
        "import gistmill\nfrom pipeline.core import rows\nfrom stages.tables.pages import Page\n"
    )
    assert unlisted(source) == {("pipeline.core", "rows")}


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


@pytest.mark.parametrize("one", CONTRACT, ids=lambda one: f"{one.module}.{one.name}")
def test_each_name_is_there_and_typed(one: Name) -> None:
    module = importlib.import_module(one.module)
    found = getattr(module, one.name)
    assert untyped(found) == set()
    assert one.name in getattr(module, "__all__", ()) or found_in(one), "defined elsewhere"
    assert (Path(str(sys.modules[one.module.split(".")[0]].__file__)).parent / "py.typed").exists()


def found_in(one: Name) -> bool:
    """True if the module's own source defines the name: mypy knows no other."""
    tree = ast.parse(inspect.getsource(importlib.import_module(one.module)))
    names = {getattr(node, "name", None) for node in tree.body}
    targets = [getattr(node, "target", None) for node in tree.body]
    targets += [target for node in tree.body for target in getattr(node, "targets", ())]
    return one.name in names | {target.id for target in targets if isinstance(target, ast.Name)}


class Half:
    """Of its functions one is typed."""

    def typed(self, number: int) -> int:
        return number

    def half(self, number) -> int:  # type: ignore[no-untyped-def]  # noqa: ANN001
        return int(number)


def test_what_is_not_typed_is_found() -> None:
    assert untyped(Half) == untyped(Half.half) == {"Half.half"}
    assert not found_in(Name("pipeline.core.rows", "dataclass", "0.3"))


def test_since_is_a_version_that_there_is_or_the_next_one() -> None:
    released = re.findall(r"^## (\d+\.\d+)\.\d+$", page("CHANGELOG.md"), re.MULTILINE)
    major, minor, _ = tomllib.loads(page("pyproject.toml"))["project"]["version"].split(".")
    assert {one.since for one in CONTRACT} <= {*released, f"{major}.{int(minor) + 1}"}


def test_a_row_without_a_version_is_refused() -> None:
    with pytest.raises(AssertionError, match="a row of other cells"):
        contract(
            "\n## The contract\n| from | name | since | what |\n|---|---|\n| `a` | `b` | | c |"
        )
