"""Docstrings say None of Python's values, and open with what a thing is or does."""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.repo.test_imports import trees

PACKAGES = ("pipeline", "stages", "jobs", "benchmarks", "gistmill")
OPENING = re.compile(r"(What|How|Whether|Of|The same)\b")
NULL = re.compile(r"\bnulls?\b", re.IGNORECASE)
# Where null is the word: in SQL and its columns, in files, and in what a user writes there.
HAS_NULL = re.compile(r"SQL|DuckDB|Arrow|Parquet|JSON|YAML|\bcolumns?\b")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def docstrings(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """The name and the docstring of everything in a module that has one."""
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and (text := ast.get_docstring(node)):
            yield getattr(node, "name", "the module"), text


def faults(text: str, is_of_columns: bool = False) -> list[str]:
    """The rules that a docstring breaks; that of a record class is about columns."""
    found = [f"opens with {opening[0]}"] if (opening := OPENING.match(text)) else []
    if NULL.search(text) and not HAS_NULL.search(text) and not is_of_columns:
        found.append("null, where Python has None")
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_keep_the_rules(package: str) -> None:
    own = {file: tree for file, tree in trees().items() if file.startswith(f"{package}/")}
    texts = [(file, name, text) for file in own for name, text in docstrings(own[file])]
    assert texts, "docstrings are found"
    found = [
        f"{file}: {name} {fault}"
        for file, name, text in texts
        for fault in faults(text, is_of_columns=file.startswith("stages/tables/"))
    ]
    assert found == []
