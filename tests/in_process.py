"""`jobs.cli.main` without a process of its own, for tests of many short commands."""

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from subprocess import CompletedProcess

from jobs.cli import main


def in_process(*words: str | Path) -> "CompletedProcess[str]":
    """As `tests.command.gistmill`, but here: a second or two less each."""
    out, err = io.StringIO(), io.StringIO()
    code = 1
    with _argv(*map(str, words)), redirect_stdout(out), redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
    return CompletedProcess(sys.argv, code, out.getvalue(), err.getvalue())


def refused(*words: str | Path) -> str:
    """The one line that a mistake leads to; the exit code must be 2."""
    return one_line(in_process(*words))


def one_line(done: "CompletedProcess[str]") -> str:
    """The complaint of a command that must have ended in exit code 2 and nothing else."""
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("gistmill: ")
    return line.removeprefix("gistmill: ")


@contextmanager
def _argv(*words: str) -> Iterator[None]:
    before = sys.argv
    sys.argv = ["gistmill", *words]
    try:
        yield
    finally:
        sys.argv = before
