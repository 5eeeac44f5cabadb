"""Engines, metrics and rubrics of judges, ours and those of loaded plugins, each of one class or
function."""

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from jobs.output.cells import Part, Table, on_one_line
from jobs.warehouse.field_comments import field_comments
from pipeline.core.engine import ENGINES
from stages.builtin import load_builtin
from stages.score.metric_functions import METRICS
from stages.tables.measures import MEASURES, RUBRICS, first_sentence

Rows = list[dict[str, Any]]


def registered() -> dict[str, Rows]:
    """What there is of each kind, with the first sentence on it and the module that it is in."""
    load_builtin()
    return {kind: sorted(rows, key=lambda row: row["name"]) for kind, rows in _kinds()}


def _kinds() -> Iterator[tuple[str, Rows]]:
    yield "engines", [_row(name, cls, first_sentence(cls)) for name, cls in ENGINES.items()]
    yield "metrics", [_row(name, MEASURES[name], one.about) for name, one in METRICS.items()]
    rubrics = [(name, judge, judge.rubrics[name]) for name, judge in RUBRICS.items()]
    yield (
        "rubrics",
        [
            {**_row(name, judge, first_sentence(prompt)), "judge": judge.label()}
            for name, judge, prompt in rubrics
        ],
    )


def _row(name: str, one: Any, about: str) -> dict[str, Any]:
    return {"name": name, "about": about, "module": one.__module__}


def described(name: str) -> dict[str, Any] | None:
    """The kind, module and docstring of what has this name; of an engine its settings too, with
    their comments. None if nothing has it."""
    settings: dict[str, str] = {}
    if name in METRICS:
        one, about = MEASURES[name], METRICS[name].about
    elif name in RUBRICS:
        one, about = RUBRICS[name], inspect.getdoc(RUBRICS[name].rubrics[name])
    elif name in ENGINES:
        one, about = ENGINES[name], inspect.getdoc(ENGINES[name])
        comments = field_comments(one)
        settings = {key: comments.get(key, "") for key in one.model_fields}
    else:
        return None
    return {"name": name, "module": one.__module__, "about": about, "settings": settings}


def described_parts(found: Mapping[str, Any]) -> Iterator[Part]:
    """One line, then the settings of an engine."""
    about = on_one_line(found["about"] or "")
    yield f"{found['name']}, of {found['module']}: {about}"
    if settings := found["settings"]:
        rows = [{"setting": key, "meaning": meaning} for key, meaning in settings.items()]
        yield Table(rows, left=("meaning",))
