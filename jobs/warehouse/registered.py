"""Rows and texts for `gistmill ls` and `gistmill schema`: everything registered, each of one class
or function (stages, prompts, engines, metrics ...), and the YAML files of `conf`."""

import ast
import inspect
import io
import textwrap
import tokenize
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from itertools import count, groupby, takewhile
from pathlib import Path
from typing import Any

from jobs.config.read_config import GROUPS
from jobs.output.cells import Part, Table, on_one_line
from pipeline.core.registry import REGISTRIES, maker_of
from stages.builtin import load_builtin

Rows = list[dict[str, Any]]
_KIND = " (kind "  # in the label of a stage


def registered() -> dict[str, Rows]:
    """By kind, a row for each registered one: name, first sentence, module."""
    load_builtin()
    return {
        kind: [
            {"name": name, "about": known.about[name], "module": maker_of(known[name]).__module__}
            for name in sorted(known)
        ]
        for kind, known in sorted(REGISTRIES.items())
    }


def described(name: str) -> list[dict[str, Any]]:
    """Everything with this name, and every kind of the stage of this name: kind, module, docstring,
    and settings, or fields of a prompt, with their comments."""
    return [
        _described(kind, own, maker_of(known[own]), known.about[own])
        for kind, known in sorted(REGISTRIES.items())
        for own in sorted(known)
        if name in (own, own.partition(_KIND)[0])
    ]


def _described(kind: str, name: str, one: Any, about: str) -> dict[str, Any]:
    own: Iterable[str] = ()
    if kind != "columns":  # columns have no class: `one` is the stage's
        about = one.__doc__ or about
        of_settings = getattr(one, "model_fields", ())
        own = [field.name for field in fields(one)] if is_dataclass(one) else of_settings
    comments = field_comments(one) if own else {}
    return {
        "name": name,
        "is": kind.removesuffix("s"),
        "module": one.__module__,
        "about": on_one_line(about),
        "settings": {key: comments.get(key, "") for key in own},
    }


def described_parts(found: Mapping[str, Any]) -> Iterator[Part]:
    """One line, then the settings or fields."""
    yield f"{found['name']}, {found['is']} of {found['module']}: {found['about']}"
    what = "field" if found["is"] in ("prompt", "rubric") else "setting"
    rows = [{what: key, "meaning": meaning} for key, meaning in found["settings"].items()]
    if rows:
        yield Table(rows, left=("meaning",))


def names_table(found: Mapping[str, Rows]) -> Table:
    """A row per kind, with all its names."""
    rows = [
        {"kind": kind, "names": ", ".join(_with_kinds([row["name"] for row in rows]))}
        for kind, rows in found.items()
    ]
    return Table(rows, left=("names",))


def _with_kinds(names: Sequence[str]) -> Iterator[str]:
    """A stage with several kinds only once, with its kinds in brackets."""
    for name, own in groupby(names, key=lambda name: name.partition(_KIND)[0]):
        kinds = [label.partition(_KIND)[2].rstrip(")") for label in own]
        if "" in kinds:
            yield name
        if any(kinds):
            yield f"{name} ({', '.join(filter(None, kinds))})"


def conf_files(folders: Sequence[Path]) -> Rows:
    """A row per method, family and choice of a config group in these folders: name, kind, file."""
    rows: Rows = []
    for folder in folders:
        for group in ("method", *GROUPS):
            rows += [{"name": file.stem, "is": group, "file": str(file)}
                     for file in sorted(folder.glob(f"{group}/*.yaml"))]  # fmt: skip
        rows += [{"name": file.parent.name, "is": "family", "file": str(file)}
                 for file in sorted(folder.glob("prompts/*/family.yaml"))]  # fmt: skip
    return rows


def field_comments(cls: type) -> dict[str, str]:
    """The comment of every field, inherited ones included, by name: on the field's own lines, else
    right above it.

    Fields without a comment are left out, and all fields of a class whose source cannot be found.
    """
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if base.__module__ != "builtins":
            found |= dict(_own_comments(base))
    return found


def _own_comments(cls: type) -> Iterator[tuple[str, str]]:
    try:
        source = textwrap.dedent(inspect.getsource(cls))
    except (OSError, TypeError):
        return
    comments = {
        token.start[0]: token
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT and "fmt:" not in token.string
    }
    alone = {line for line, token in comments.items() if token.line.lstrip().startswith("#")}
    (tree,) = ast.parse(source).body
    assert isinstance(tree, ast.ClassDef)
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            beside = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            above = takewhile(alone.__contains__, count(node.lineno - 1, -1))
            lines = [line for line in beside if line in comments] or sorted(above)
            if lines:
                yield node.target.id, " ".join(comments[n].string.lstrip("# ") for n in lines)
