"""Prints parts, lines and JSON on standard output. Parts are Markdown, ready to paste; on a
terminal they are fitted to its width, unless whole Markdown is asked for. Damaged files that a
command leaves out are a line each on standard error.

Control characters, which a corpus may hold and a terminal would obey, are printed as escapes.
"""

import codecs
import dataclasses
import json
import math
import shutil
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from decimal import Decimal
from typing import Any, TypeVar

from jobs.output.cells import CONTROLS, Part, Table, printable
from jobs.output.markdown import markdown
from pipeline.core.errors import LeftOutWarning

_Found = TypeVar("_Found")


def print_line(text: str = "") -> None:
    sys.stdout.write(printable(text) + "\n")


def print_json(content: Any) -> None:
    """Print as JSON; characters that a terminal would obey, and non-ASCII where standard output is
    not UTF-8, are \\u escapes, which keep values exact."""
    is_utf = codecs.lookup(sys.stdout.encoding or "utf-8").name.startswith("utf")
    sys.stdout.write(json_text(content, indent=2, is_ascii=not is_utf) + "\n")


def json_text(content: Any, indent: int | None = None, is_ascii: bool = False) -> str:
    """The JSON text that `print_json` prints."""
    text = json.dumps(
        json_value(content), indent=indent, default=str, ensure_ascii=is_ascii, allow_nan=False
    )
    return CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def json_value(value: Any) -> Any:
    """A value that JSON allows: null for NaN and infinities, numbers for decimals, ISO 8601 for
    times, objects for dataclasses."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return json_value(dataclasses.asdict(value))
    if isinstance(value, Mapping):
        return {key: json_value(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(inner) for inner in value]
    if isinstance(value, float | Decimal):
        return float(value) if math.isfinite(value) else None
    return value.isoformat() if isinstance(value, datetime) else value


def print_found(
    found: _Found,
    parts: Callable[[_Found], Iterable[Part]],
    as_json: bool,
    whole: bool = False,
) -> None:
    if as_json:
        print_json(found)
    else:
        print_parts(parts(found), whole)


def is_fitted(whole: bool) -> bool:
    """True if standard output is a terminal and the parts are not `whole`."""
    return sys.stdout.isatty() and not whole


def print_parts(parts: Iterable[Part], whole: bool = False) -> None:
    """Print as Markdown, or fitted to a terminal unless `whole`."""
    if is_fitted(whole):
        from jobs.output.terminal import fitted_to_terminal  # here: rich takes a moment

        print_line(fitted_to_terminal(parts, shutil.get_terminal_size().columns))
    else:
        print_line(markdown(parts))


def exact_rows(rows: Sequence[Mapping[str, Any]]) -> list[Part]:
    """The rows of a query: all columns, and fractions with all their digits."""
    exact = [{k: repr(v) if isinstance(v, float) else v for k, v in row.items()} for row in rows]
    return [Table(exact, keeps_empty=True)]


_MOST_LINES = 20


@contextmanager
def warn_in_lines(warn: Callable[[str], None]) -> Iterator[None]:
    """Give `warn` a line per LeftOutWarning inside the context, up to 20."""
    found: dict[str, None] = {}
    with warnings.catch_warnings():
        show_other = warnings.showwarning

        def show(message: Any, category: type[Warning], *where: Any, **more: Any) -> None:
            if not issubclass(category, LeftOutWarning):
                show_other(message, category, *where, **more)
                return
            line = f"gistmill: left out {' '.join(str(message).split())}"
            if line not in found:
                found[line] = None
                if len(found) <= _MOST_LINES:
                    warn(line)

        warnings.simplefilter("always", LeftOutWarning)
        warnings.showwarning = show
        yield
    if len(found) > _MOST_LINES:
        rest = len(found) - _MOST_LINES
        warn(f"gistmill: left out {rest} more files; gistmill sql 'from left_out' lists them")
