"""Print the damaged files of a warehouse that a command leaves out: a line each on standard
error."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pipeline.core.errors import LeftOutWarning

_MOST_LINES = 20


@contextmanager
def warn_of_left_out(warn: Callable[[str], None]) -> Iterator[None]:
    """Give `warn` a line per file that is left out inside the context, up to 20."""
    found: dict[str, None] = {}
    with warnings.catch_warnings():
        show_other = warnings.showwarning

        def show(message: Any, category: type[Warning], *where: Any, **more: Any) -> None:
            line = f"gistmill: left out {' '.join(str(message).split())}"
            if not issubclass(category, LeftOutWarning):
                show_other(message, category, *where, **more)
            elif line not in found:
                found[line] = None
                if len(found) <= _MOST_LINES:
                    warn(line)

        warnings.simplefilter("always", LeftOutWarning)
        warnings.showwarning = show
        yield
    if len(found) > _MOST_LINES:
        rest = len(found) - _MOST_LINES
        warn(f"gistmill: left out {rest} more files; gistmill sql 'from left_out' lists them")
