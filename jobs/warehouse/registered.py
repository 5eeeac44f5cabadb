"""Stages, prompts, engines, metrics, rubrics, formats of corpora, extractors, report
columns: each of one class or function, ours or a loaded plugin's."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from itertools import groupby
from typing import Any

from jobs.output.cells import Part, Table, on_one_line
from jobs.warehouse.field_comments import field_comments
from pipeline.core.registry import LISTED, Listed
from stages.builtin import load_builtin

Rows = list[dict[str, Any]]
_KIND = " (kind "  # in the label of a stage


def registered() -> dict[str, Rows]:
    """A row for each of a kind: name, first sentence, module."""
    load_builtin()
    return {
        kind: [
            {"name": name, "about": found.about, "module": found.one.__module__}
            for name, found in sorted(known.items())
        ]
        for kind, known in sorted(LISTED.items())
    }


def described(name: str) -> list[dict[str, Any]]:
    """All that have this name, and every kind of the stage of this name: kind, module, docstring,
    and settings, or fields of a prompt, with their comments."""
    return [
        _described(kind, own, found)
        for kind, known in sorted(LISTED.items())
        for own, found in sorted(known.items())
        if name in (own, own.partition(_KIND)[0])
    ]


def _described(kind: str, name: str, found: Listed) -> dict[str, Any]:
    one, about = found.one, found.one.__doc__ or found.about
    if kind == "columns":  # its class is that of the stage
        one, about = None, found.about
    own = [f.name for f in fields(one)] if is_dataclass(one) else getattr(one, "model_fields", ())
    comments = field_comments(one) if own else {}
    return {
        "name": name,
        "is": kind.removesuffix("s"),
        "module": found.one.__module__,
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
    """A row per kind, with all names of it."""
    rows = [
        {"kind": kind, "names": ", ".join(_with_kinds([row["name"] for row in rows]))}
        for kind, rows in found.items()
    ]
    return Table(rows, left=("names",))


def _with_kinds(names: Sequence[str]) -> Iterator[str]:
    """The names; of a stage with several kinds once, with these."""
    for name, own in groupby(names, key=lambda name: name.partition(_KIND)[0]):
        kinds = [label.partition(_KIND)[2].rstrip(")") for label in own]
        if "" in kinds:
            yield name
        if any(kinds):
            yield f"{name} ({', '.join(filter(None, kinds))})"
