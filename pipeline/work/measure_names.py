"""Measures by name: each is made by one metric, one rubric of a judge, or a table's SQL, of which a
stage declares the column."""

import re
from typing import Any

from pipeline.core.errors import UsageError
from pipeline.core.registry import register
from pipeline.work.class_checks import file_of

ORIGINAL = "_original"  # ends the names of metrics against references before a correction
MEASURES: dict[str, Any] = {}  # and the function or class that makes it
_NAME = re.compile(r"[a-z]\w*", re.ASCII)


def register_measure(name: str, maker: Any) -> None:
    """Add a metric's function, or the class of a judge or stage. Raises UsageError, naming its
    file, for a name that another measure has or that no column can have."""
    if why := why_no_measure(name):
        raise UsageError(f"{file_of(maker)}: {maker.__name__}: the measure {name!r}: {why}")
    register(MEASURES, name, maker, f"makes the measure {name!r}")


def why_no_measure(name: str) -> str | None:
    """Advice where no column can have this name; None if one can."""
    if _NAME.fullmatch(name) and not name.endswith(ORIGINAL):
        return None
    return f"write a small letter, then letters, digits and _, not ending in {ORIGINAL}"
