"""No stage, table, prompt or kind of a stage is named in `jobs/` or `pipeline/`.

What is looked at: every string of code that is no docstring, parts of f-strings among them, and
every .sql file without its comments. The names are those of the built-in record classes, stages and
prompts; `documents`, `questions` and `calls` belong to the machinery. A string is at fault where
- it is exactly a name of a stage, table or prompt;
- it is exactly a kind, but for kinds that have a meaning of their own elsewhere (`MEANINGS`);
- it has a name as a word, though that is no word of English (`look_up`, `lookups`, `gist` ...);
- it has a table's name after from, join, using, table or into, as SQL has it;
- it has a name within single quotes, as SQL writes values.
So a message may speak of answers and pages, and no query, key or comparison can.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.core.plugins import import_installed
from pipeline.core.prompts import PROMPTS
from pipeline.core.rows import RECORDS
from pipeline.work.stage import STAGES
from tests.support.command import ROOT

OWN = {"documents", "questions", "calls"}
# Words that people say, which name something of ours as well.
ENGLISH = {
    "answer", "answers", "compress", "embed", "keys", "navigate", "nodes", "page", "pages",
    "paginate", "rate", "ratings", "score", "scores", "summarize", "tree", "visits",
}  # fmt: skip
# Kinds that are also roles, columns, settings, no value, or what `bench` measures.
MEANINGS = {"memory", "model", "none", "random", "sequential", "text", "tokens"}

import_installed()
KINDS = {stage.kind: stage for stage in STAGES.values() if stage.kind}
TABLES = {name for name, record in RECORDS.items() if record.__module__.startswith("stages.")}
NAMES = (
    TABLES
    | {stage.name for stage in STAGES.values() if stage.__module__[:7] == "stages."}
    | {name for name, prompt in PROMPTS.items() if prompt.__module__.startswith("stages.")}
) - OWN
EXACT = NAMES | {k for k, c in KINDS.items() if c.__module__[:7] == "stages."} - MEANINGS
FOLDERS = ("jobs", "pipeline", "benchmarks")
FILES = sorted(file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py"))
SQL_FILES = sorted(file for folder in FOLDERS for file in (ROOT / folder).rglob("*.sql"))


def faults(source: str) -> Iterator[str]:
    """The strings of a module that name what is not the machinery's, with their lines."""
    tree = ast.parse(source)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        if id(node) not in docstrings and (name := named(node.value)):
            yield f"{node.lineno}: {name}"


def named(text: str) -> str | None:
    """The name that a string has and should not have."""
    if text in EXACT:
        return text
    words = set(re.findall(r"\w+", text)) & NAMES - ENGLISH
    quoted = set(re.findall(r"'(\w+)'", text)) & NAMES
    after = re.findall(r"\b(?:from|join|using|table|into)\s+(?:all_|raw_)?(\w+)", text, re.I)
    found = sorted(words | quoted | (set(after) & TABLES - OWN))
    return found[0] if found else None


def test_the_names_are_those_of_the_stages() -> None:
    assert {"pages", "gists", "embeddings", "lookups", "answers", "ratings", "scores"} <= NAMES
    assert {"paginate", "gist", "embed", "look_up", "answer", "rate", "score"} <= NAMES
    assert {"break_point", "look_up_p", "look_up_s", "rate_strict"} <= NAMES
    assert {"bm25", "parallel", "uniform", "oracle"} <= EXACT
    assert not OWN & EXACT


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_the_machinery_names_none(file: Path) -> None:
    assert list(faults(file.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("file", SQL_FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_its_sql_names_none(file: Path) -> None:
    assert named(re.sub("--.*", "", file.read_text(encoding="utf-8"))) is None


def test_the_machinery_imports_no_stage() -> None:
    """Commands read corpora, a notebook and what is gathered of documents, which are not stages; of
    those they only say that there are some."""
    for file in FILES:
        source = file.read_text(encoding="utf-8")
        imported = re.findall(r"^\s*(?:from|import) (stages\S*)", source, re.MULTILINE)
        allowed = ("stages.corpora", "stages.builtin")
        gathered = {f"stages.gathered.{name}" for name in ("gathered_pages", "quoted")}
        assert all(n.startswith(allowed) or n in gathered for n in imported), file
