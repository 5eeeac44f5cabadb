"""Measures by name: each is made by one metric, one rubric of a judge, or a table's SQL, of which a
stage may declare the column."""

import re
from typing import Any

from pipeline.core.errors import UsageError
from pipeline.core.plugins import PARENT
from pipeline.core.registry import Registry
from pipeline.core.rows import Record
from pipeline.work.class_checks import file_of

MEASURES: Registry[Any] = Registry("makes the measure {!r}")  # its function or class
_MADE = re.compile(r"'([^']*)'\s+(?:as\s+)?measure\b", re.IGNORECASE)  # by a table's SQL
_NAME = re.compile(r"[a-z]\w*", re.ASCII)


def register_measure(name: str, maker: Any) -> None:
    """Add a metric's function, or the class of a judge or stage. Raises UsageError, naming its
    file, for a name that another measure has or that no column can have."""
    if not _NAME.fullmatch(name):
        why = "write a small letter, then letters, digits and _"
        raise UsageError(f"{file_of(maker)}: {maker.__name__}: the measure {name!r}: {why}")
    _register(name, maker)


def register_made(record: type[Record]) -> None:
    """Add the measures that the SQL of a plugin's table makes, where it has their names. Raises
    UsageError for one that another plugin has, or ours."""
    for name in _MADE.findall(record.sql().get("measures", "")):
        _register(name, record)


def _register(name: str, maker: Any) -> None:
    """A plugin's table makes what a column of its stage shows: its classes may share a name."""
    other = MEASURES.get(name)
    are_classes = isinstance(other, type) and isinstance(maker, type)
    if not are_classes or _plugin_of(other) != _plugin_of(maker):
        MEASURES.add(name, maker)


def _plugin_of(one: Any) -> list[str]:
    """The package of a class's plugin."""
    parts: list[str] = one.__module__.split(".")
    return parts[: 2 if parts[0] == PARENT else 1]
