"""Extract texts in a separate process: a file that crashes it, or takes too much memory or time,
loses only that file. The process is started when first needed, and again after a crash.

The process runs this module, with folders of plugins as arguments, which it imports when a kind is
not built in. Requests are pickled; a reply is a line of JSON, since a plugin may return objects of
its own classes.
"""

import json
import os
import pickle
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

from pipeline.core.errors import contained
from pipeline.core.registry import load_plugins, loaded_folders
from stages.extract import documents, pdf  # noqa: F401  # they register their extractors
from stages.extract.extracted import EXTRA, EXTRACTORS, Extracted, UnreadableError

_ROOT = Path(__file__).parents[2]
_MOST_MEMORY = 2**32  # bytes of address space
_SECONDS = 600.0  # that one file may take


class Extractor:
    """A context manager, which ends the process."""

    _process: "subprocess.Popen[bytes] | None" = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._process:
            self._end(self._process)

    def extract(self, kind: str, content: bytes) -> Extracted:
        """The text of a file. `kind`: a key of EXTRACTORS. Raises UnreadableError where the file
        cannot be read, or its process has crashed."""
        process = self._process = self._process or _start()
        assert process.stdin and process.stdout
        with suppress(BrokenPipeError, ValueError):  # the reply is cut short
            pickle.dump((kind, content, _SECONDS), process.stdin)
            process.stdin.flush()
            reply: dict[str, Any] = json.loads(process.stdout.readline())
            if "wrong" in reply:
                raise UnreadableError(reply["wrong"])
            return Extracted(**reply)
        code = self._end(process)
        if code == -signal.SIGALRM:
            raise UnreadableError(f"not read within {_SECONDS:.0f} s; fix or delete it")
        why = f"its process ended with exit code {code}, perhaps for lack of memory"
        raise UnreadableError(f"{why}; free some, or fix or delete it")

    def _end(self, process: "subprocess.Popen[bytes]") -> int:
        self._process = None
        with suppress(BrokenPipeError):
            process.communicate()
        return process.returncode


def _start() -> "subprocess.Popen[bytes]":
    path = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))
    return subprocess.Popen(
        # -P: no module of the folder that the command was started in.
        [sys.executable, "-P", "-m", "stages.extract.isolated", *map(str, loaded_folders())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # libraries warn there
        env={**os.environ, "PYTHONPATH": path},
    )


def _serve() -> None:
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # libraries may print, which must not mix with replies
    with suppress(EOFError):
        while True:
            kind, content, seconds = pickle.load(sys.stdin.buffer)
            signal.setitimer(signal.ITIMER_REAL, seconds)  # SIGALRM ends the process
            reply = _reply(kind, content)
            signal.setitimer(signal.ITIMER_REAL, 0)
            replies.write(f"{reply}\n")
            replies.flush()


def _reply(kind: str, content: bytes) -> str:
    """The fields of Extracted, or what is `wrong`, as JSON."""
    with contained() as raised:
        if kind not in EXTRACTORS:
            load_plugins(sys.argv[1:])
        extracted: Any = EXTRACTORS[kind](content)
        if not isinstance(extracted, Extracted):
            what = type(extracted).__name__
            raise UnreadableError(f"its extractor returned {what}; return Extracted")
        return json.dumps(asdict(extracted))
    if isinstance(raised.error, UnreadableError):
        wrong = str(raised.error)
    elif isinstance(raised.error, ImportError):
        missing = raised.error.name or raised.error
        wrong = f"needs {missing}, which is not installed; {EXTRA}"
    else:
        wrong = f"damaged ({raised.line()}); fetch it again"
    return json.dumps({"wrong": wrong})


if __name__ == "__main__":
    _serve()
