"""Problem codes of rows, the errors that end a command with an exit code, the signals that end one,
and the redaction of secrets in all that leaves the process."""

import os
import re
import signal
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import Any, ClassVar, Literal, NoReturn
from urllib.parse import urlsplit

Problem = Literal[
    "truncated",  # the reply budget ended the reply; its text is kept
    "unparseable",  # the reply cannot be parsed; its text is kept in calls
    "no_answer",  # the method ended without an answer
    "out_of_range",  # the reply names an option that does not exist
    "context_overflow",  # what must be read exceeds the engine's context, or a budget; not sent
    "empty_input",  # a text without words
    "timeout",  # no reply within engine.deadline_seconds of the request's admission
    "refused",  # the server refused the request by an HTTP status, which calls.reply begins with
    "engine_failed",  # the engine aborted the request, cut its prompt, or gave no usable reply
    "unit_failed",  # a stage raised, or crashed its worker, on this unit
    "upstream",  # a row that this one depends on has a problem itself
    "bad_input",  # an entry of a file that is no valid document, question or answer
]
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
# The password or token of an address; a number before a slash is a port.
_PASSWORD = re.compile(r"(://[^/@\s:]*):(?!\d+/)[^@\s]+@|(https?://)[^/@\s:]+@")
INTERRUPTED = "interrupted; run the same command to resume"
_keys: set[str] = set()
_stderr = 2
with suppress(OSError):  # a process may have none
    _stderr = os.dup(2)  # a copy: 2 is silenced while Ray starts


def remember_key(key: str) -> str:
    """Have `redacted` hide a key from now on; returns it without outer white space."""
    stripped = key.strip()
    _keys.update(stripped.splitlines())  # errors escape line breaks, so each line is hidden
    return stripped


def redacted(text: str) -> str:
    """Replace remembered keys, and passwords and tokens in addresses, by ***."""
    for key in _keys:
        text = text.replace(key, "***")
    return _PASSWORD.sub(lambda match: f"{match[1]}:***@" if match[1] else f"{match[2]}***@", text)


def refuse_secret(word: str) -> None:
    """Raise UsageError if a `key=value` word holds a remembered key, or an address with a password,
    as words are stored with a run. The environment of a Ray job is not stored."""
    key, _, value = word.partition("=")
    if redacted(value) != value and not key.startswith("cluster.runtime_env"):
        raise UsageError(
            f"{key}: set no secret here, as it is stored with the run; put it into an environment "
            "variable (HF_TOKEN, AWS_SECRET_ACCESS_KEY, the one that engine.api_key_env names)"
        )


class CommandError(Exception):
    """An error that ends a command with `exit_code`: one line on standard error."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str) -> None:
        super().__init__(redacted(str(message)))


class UsageError(CommandError):
    """A mistake in a command, config or file: one line that names it and what to do."""

    exit_code = 2

    def __init__(self, message: str) -> None:
        """Escape line breaks and other control characters, as a name in the message may have."""
        super().__init__(_CONTROL.sub(lambda c: ascii(c[0])[1:-1], message))


class AccountingError(CommandError):
    """Rows were lost, doubled or do not match their inputs."""


class DamagedError(AccountingError):
    """A file of the warehouse cannot be used. Commands that only read leave it out."""

    def __init__(self, file: object, why: str) -> None:
        super().__init__(f"{file}: {why}")
        self.file, self.why = str(file), why

    def __reduce__(self) -> tuple[Any, ...]:  # else its message alone would be given to __init__
        return DamagedError, (self.file, self.why)


class LeftOutWarning(UserWarning):
    """A damaged file or part of the input was left out; commands print "left out " before it."""


class IncompleteError(CommandError):
    """The run is not complete; the same command resumes it."""

    exit_code = 4


class EndedError(IncompleteError):
    """The run ended early, at its deadline or by SIGTERM."""


class StorageError(IncompleteError):
    """Storage refuses an operation for good, or for longer than it is retried."""


class ClusterError(IncompleteError):
    """Ray did not start on this machine."""


class OutageError(IncompleteError):
    """The server of an engine stays unreachable, or refuses the API key."""


class EngineError(CommandError):
    """The engine is dead and cannot answer any more requests."""


class StartError(EngineError):
    """The engine cannot start, which ends the run."""


@dataclass
class Raised:
    """The exception of a block of a plugin's code; None where there was none."""

    error: Exception | None = None

    def trace(self) -> str:
        return "".join(traceback.format_exception(self.error, limit=-3))

    def line(self) -> str:
        """Describe the exception in one line: class, message and place."""
        assert self.error is not None
        (frame,) = traceback.extract_tb(self.error.__traceback__, limit=-1)
        why = " ".join(str(self.error).split())
        return f"{type(self.error).__name__}: {why} ({frame.filename}:{frame.lineno})"


@contextmanager
def contained(*beside: type[Exception]) -> Iterator[Raised]:
    """Execute a block that calls a plugin's code. An exception ends only the block and is recorded
    in the yielded `Raised`; an exception of one of the classes `beside` is raised."""
    raised = Raised()
    try:
        yield raised
    except beside:
        raise
    except Exception as error:  # noqa: BLE001  # the only broad handler: a plugin may raise anything
        raised.error = error


def end_process(line: str) -> NoReturn:
    """End this process at once, without cleaning up, where an IncompleteError cannot be raised."""
    with suppress(OSError):
        os.write(_stderr, f"gistmill: {line}\n".encode())
    os._exit(IncompleteError.exit_code)


def end_at_signal(number: int, frame: FrameType | None) -> None:
    """End without raising: what a handler raises may hit a library while it holds a lock. A run
    whose workers are at work ends gracefully instead (jobs/run/graceful_stop.py)."""
    end_process(INTERRUPTED)


def interruptible() -> None:
    """Let Ctrl-C and SIGTERM end this process in one line, also while it imports modules."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as a shell's & has it
            signal.signal(number, end_at_signal)


def proxies() -> list[str]:
    """The variables that name proxies of HTTP requests; their values may hold passwords."""
    names = [name for name, value in os.environ.items() if value]
    return [n for n in names if n.lower().endswith("_proxy") and n.lower() != "no_proxy"]


def through_proxy(url: str) -> str:
    """The end of a message about a URL: which variable names the proxy that is used for it; "" if
    none is used."""
    from urllib.request import proxy_bypass  # imported here, as it loads all of HTTP

    parts = urlsplit(url)
    names = [n for n in proxies() if n.lower() in (f"{parts.scheme}_proxy", "all_proxy")]
    if not names or proxy_bypass(parts.hostname or ""):
        return ""
    return f" through the proxy that {' or '.join(names)} names"


@contextmanager
def environment_errors(address: str) -> Iterator[None]:
    """Turn an error of creating a client, which is of any library, into a StartError that names the
    environment's variables."""
    with contained() as raised:
        yield
    if error := raised.error:
        certificates = [n for n in ("SSL_CERT_FILE", "SSL_CERT_DIR") if os.environ.get(n)]
        names = " or ".join([*proxies(), *certificates])
        # Shown without its address, which may hold a password.
        is_of_proxy = proxies() and not isinstance(error, (ImportError, OSError))
        why = "a proxy's address is none" if is_of_proxy else str(error)
        fix = f"correct or unset {names}" if names else "correct it"
        raise StartError(f"{address}: no client of it can be made ({why}); {fix}")
