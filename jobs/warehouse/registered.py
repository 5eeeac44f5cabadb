"""Engines, trackers, metrics, rubrics of judges: each of one class or function, ours or a
plugin's."""

from collections.abc import Iterator, Mapping
from typing import Any

from jobs.output.cells import Part, Table, on_one_line
from jobs.warehouse.field_comments import field_comments
from pipeline.core.registry import LISTED
from stages.builtin import load_builtin

Rows = list[dict[str, Any]]


def registered() -> dict[str, Rows]:
    """A row for each of a kind: name, first sentence, module."""
    load_builtin()
    return {
        kind: [
            {"name": name, "about": found.about, "module": found.one.__module__}
            for name, found in sorted(known.items())
        ]
        for kind, known in LISTED.items()
    }


def described(name: str) -> dict[str, Any] | None:
    """The kind, module and docstring of the one of this name, and its settings with their comments;
    None if nothing has it."""
    for kind, known in LISTED.items():
        if name in known:
            one, about = known[name].one, known[name].about
            settings = getattr(one, "model_fields", ())
            comments = field_comments(one) if settings else {}
            return {
                "name": name,
                "is": kind.removesuffix("s"),
                "module": one.__module__,
                "about": on_one_line(one.__doc__ or about),
                "settings": {key: comments.get(key, "") for key in settings},
            }
    return None


def described_parts(found: Mapping[str, Any]) -> Iterator[Part]:
    """One line, then the settings."""
    yield f"{found['name']}, {found['is']} of {found['module']}: {found['about']}"
    rows = [{"setting": key, "meaning": meaning} for key, meaning in found["settings"].items()]
    if rows:
        yield Table(rows, left=("meaning",))
