"""Long texts in a terminal: lines wrapped below their own beginning, through a pager if they are
more than a screen."""

import os
import pydoc
import shutil

from jobs.output.cells import printable
from jobs.output.print_tables import print_line
from jobs.output.terminal import LEAST, wrapped


def hanging(text: str, width: int) -> str:
    """Every line wrapped to `width` at spaces, its further lines under it, indented as it is."""
    return "\n".join(_hanging(line, max(width, LEAST)) for line in printable(text).splitlines())


def _hanging(line: str, width: int) -> str:
    body = line.lstrip(" ")
    margin = line[: min(len(line) - len(body), width // 2)]
    return "\n".join(margin + part for part in wrapped(body, width - len(margin)))


def show_paged(text: str) -> None:
    """Show a text on standard output, a terminal: with PAGER, else less, if it is longer than the
    screen. Less ends by itself after a text that fits, and leaves it on the screen."""
    if len(text.splitlines()) < shutil.get_terminal_size().lines:
        print_line(text)
        return
    os.environ.setdefault("LESS", "FRX")
    pydoc.pager(f"{text}\n")
