"""One line on standard error that says what `ask` or `chat` does at this moment."""

import sys
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any, Self

from jobs.output.cells import printable
from stages.gathered.quoted import ACTIVITIES

_CLEAR = "\r\x1b[K"


class Doing:
    """Rewrites its line in a terminal; elsewhere a line is printed when something else begins.
    `warn` prints a line that stays. It listens to runs. At the end of its `with` block nothing is
    left of it in a terminal."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self._is_terminal = sys.stderr.isatty()
        self._said, self._is_hushed = "", False
        self._lock = Lock()  # workers are watched in a thread of their own
        self._num_files, self._reading = 1, "reading"
        self._found: set[str] = set()  # lines of earlier runs, whose engine is kept

    def __enter__(self) -> Self:
        if self._is_terminal:  # elsewhere a mistake in the words is a single line
            self.say("looking for files")
        return self

    def __exit__(self, *error: object) -> None:
        self.is_done()

    def follow(self, num_files: int, reading: str) -> None:
        """Listen to a run of so many files next; `reading`: what its readers do."""
        self._num_files, self._reading = num_files, reading
        self.loaded(0)

    def say(self, what: str, about: str = "") -> None:
        """Say what is done now: `reading file`, ` 4 of 20`."""
        with self._lock:
            if self._is_hushed:
                return
            if self._is_terminal:
                sys.stderr.write(_CLEAR + printable(what + about) + " ...")
                sys.stderr.flush()
            elif what != self._said:
                self._warn(f"{what}{about} ...")
            self._said = what

    def hush(self) -> None:
        """Take the line away, and say nothing until `is_done`: an answer is being printed."""
        self.is_done()
        self._is_hushed = True

    def is_done(self) -> None:
        """Nothing is done any more: take the line away."""
        with self._lock:
            self._is_hushed = False
            if self._said and self._is_terminal:
                sys.stderr.write(_CLEAR)
                sys.stderr.flush()
            self._said = ""

    def warn(self, line: str) -> None:
        self.is_done()
        self._warn(line)

    def found(self, line: str) -> None:
        """Print a finding about the replies, once for all runs."""
        if line not in self._found:
            self._found.add(line)
            self.warn(line)

    def loaded(self, num_documents: int) -> None:
        """So many of the files are read."""
        if num_documents < self._num_files:
            self.say("reading file", f" {num_documents + 1} of {self._num_files}")

    def at_work(self, state: Mapping[str, Any]) -> None:
        """The state of a run, by `Progress.state`."""
        inside, server = state["inside"] or {}, state["waiting_for"]
        if server:
            self.say(f"waiting for {server}")
        elif inside.get("about") and inside["table"] in ACTIVITIES:
            now = min(inside["done"] + 1, inside["about"])
            self.say(ACTIVITIES[inside["table"]], f" {now} of about {inside['about']}")
        else:
            what = self._reading if state["phase"] == "reading" else state["phase"]
            self.say(what, f", {100 * state['share']:.0f}%" if state["share"] else "")
