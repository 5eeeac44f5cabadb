"""The real `gistmill` command, and the data that tests read."""

import io
import json
import os
import pty
import re
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any
from unittest.mock import patch

import pytest

from jobs.cli import main
from stages.builtin import load_builtin
from tests.support.fork_server import exit_code, forked, started
from tests.support.without_ray import needs_ray, without_ray

load_builtin()  # all, once: as many as the first tests need would be in another order

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"  # ships with the project
QMSUM = DATA / "qmsum" / "val.jsonl"  # the first 8 of 35 meetings
# Whole corpora, for tests marked with NEEDS_WHOLE: slow, and failed in one line without the data.
WHOLE = Path(os.environ.get("GISTMILL_DATA") or ROOT.parent / "shared" / "data")
WHOLE_QMSUM = WHOLE / "qmsum" / "val.jsonl"
NEEDS_WHOLE = [pytest.mark.slow, pytest.mark.whole]


def gistmill(*words: str | Path) -> "CompletedProcess[str]":
    """Run the command here: starting Python and Ray anew would take longer than most runs. It
    works without Ray unless a cluster is named."""
    out, err = io.StringIO(), io.StringIO()
    code = 1
    words = ("gistmill", *without_ray(*words))
    with patch("sys.argv", [*words]), redirect_stdout(out), redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
    return CompletedProcess(words, code, out.getvalue(), err.getvalue())


def own_process(*words: str | Path, timeout: float = 300) -> "CompletedProcess[str]":
    """Run the command in a process of its own: for what is left to the environment, or loads a
    plugin, which stays in a process. It works without Ray unless a cluster is named."""
    if needs_ray(*words):
        command = [sys.executable, "-m", "gistmill", *map(str, words)]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=timeout)
    return forked("gistmill", *map(str, words), folder=ROOT, timeout=timeout)


def succeed(*words: str | Path, code: int = 0) -> str:
    """The command's standard output; the exit code must be `code`."""
    return succeeded(gistmill(*words), code)


def succeeded(done: "CompletedProcess[str]", code: int = 0) -> str:
    """The standard output of a command that must have ended in exit code `code`."""
    assert done.returncode == code, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def refused(*words: str | Path) -> str:
    """The one line that a mistake leads to; the exit code must be 2."""
    return one_line(gistmill(*words))


def one_line(done: "CompletedProcess[str]") -> str:
    """The complaint of a command that must have ended in exit code 2 and nothing else, without the
    indented lines below it that mark the place in a query."""
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stdout == ""
    line, *hints = done.stderr.splitlines()
    assert all(hint.startswith("  ") for hint in hints)
    assert line.startswith("gistmill: ")
    return line.removeprefix("gistmill: ")


def sql(warehouse: str | Path, query: str, *words: str) -> list[dict[str, Any]]:
    """Rows of `gistmill sql --json`."""
    rows: list[dict[str, Any]] = json.loads(
        succeed("sql", query, f"warehouse={warehouse}", *words, "--json")
    )
    return rows


def sql_values(warehouse: str | Path, query: str, *words: str) -> list[tuple[Any, ...]]:
    """The rows of `sql` without the names of the columns."""
    return [tuple(row.values()) for row in sql(warehouse, query, *words)]


def without_identity(text: str) -> str:
    """Raters' names as their scripts are called: the 4 hex of their settings are left out."""
    return re.sub(r"(scripted:\w+)-[0-9a-f]{4}", r"\1", text)


def in_terminal(width: int, *words: str) -> str:
    """What the command prints in a terminal of so many columns and 50 lines."""
    ours, theirs = pty.openpty()
    env = {"COLUMNS": str(width), "LINES": "50", "TERM": "xterm"}
    asking = started().start(["gistmill", *words], ROOT, env, theirs, theirs, 2)
    os.close(theirs)
    found = b""
    try:
        while part := os.read(ours, 65536):
            found += part
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    assert exit_code(asking) == 0
    return found.decode().replace("\r\n", "\n")
