"""The errors that cross module borders, and the closed set of problem codes.

A user's mistake is a `UsageError` (exit 2), rows that do not add up are an `AccountingError`
(exit 1), a dead engine is an `EngineError`. Everything else that goes wrong becomes rows.
"""

from typing import Literal, get_args

Problem = Literal[
    "truncated",  # the reply budget ended the reply; its text is kept
    "unparseable",  # the reply cannot be read; its text is kept in calls
    "out_of_range",  # the reply names an option that does not exist
    "context_overflow",  # prompt + reply budget exceed the engine's context; never asked
    "empty_input",  # nothing to work on
    "timeout",  # no reply within engine.deadline_seconds of its admission
    "engine_failed",  # the engine gave the request up
    "unit_failed",  # our code raised while working on the unit
    "upstream",  # what this row needs has a problem itself
    "bad_input",  # the corpus file holds something that is no document or question
]
PROBLEMS: tuple[str, ...] = get_args(Problem)


class UsageError(Exception):
    """A mistake in a command, config or file: one line naming the place and what to do. Exit 2."""


class AccountingError(Exception):
    """Rows were lost, doubled or do not match their inputs. Exit 1."""


class EndedError(Exception):
    """The run's time is over: its deadline, or SIGTERM. Exit 4; the same command goes on."""


class EngineError(Exception):
    """The engine is dead and cannot answer any more requests."""


class StartError(EngineError):
    """The engine cannot start: one line that says what to do. Ends the run, exit 1."""
