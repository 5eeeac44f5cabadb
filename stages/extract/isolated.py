"""Extract texts in a separate process: a file that crashes it, or takes too much memory or time,
loses only that file. The process is started when first needed, and again after a crash.

The process runs this module, with folders of plugins as arguments, which it imports when a kind is
not built in. A request is a line `{"kind": ..., "bytes": N}` and N bytes; a reply is a line of
JSON.
"""

import json
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from signal import SIGKILL
from threading import Timer
from types import TracebackType
from typing import Any, Self

from pipeline.core.registry import load_plugins, loaded_folders
from stages.extract import documents, pdf  # noqa: F401  # they register their extractors
from stages.extract.extracted import EXTRA, EXTRACTORS, Extracted, UnreadableError

_ROOT = Path(__file__).parents[2]
_SECONDS = 600.0
_MOST_MEMORY = 2**32  # bytes of address space


class Extractor:
    """A context manager. `seconds`: the time limit of one file."""

    def __init__(self, seconds: float = _SECONDS) -> None:
        self._seconds = seconds
        self._child: _Child | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._child:
            self._child.end()

    def extract(self, kind: str, content: bytes) -> Extracted:
        """The text of a file. `kind`: a key of EXTRACTORS.

        Raises UnreadableError where the file cannot be read, or its process has crashed.
        """
        self._child = child = self._child or _Child()
        reply = child.reply(kind, content, self._seconds)
        if reply is None:
            code, error = child.end()
            self._child = None
            if child.is_late:
                raise UnreadableError(f"not read within {self._seconds:.0f} s; fix or delete it")
            if code == -SIGKILL:
                raise UnreadableError(
                    "its process was killed, perhaps for lack of memory; free some and try again"
                )
            if error.startswith("MemoryError"):
                raise UnreadableError("takes over 4 GiB of memory; fix or delete it")
            raise UnreadableError(f"damaged ({error or f'exit code {code}'}); fetch it again")
        if "wrong" in reply:
            raise UnreadableError(reply["wrong"])
        return Extracted(**reply)


class _Child:
    """The process. `is_late`: it was killed because a file took too long."""

    def __init__(self) -> None:
        self.is_late = False
        path = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  # end closes it
        self._process = subprocess.Popen(
            # -P: no module of the folder that the command was started in.
            [sys.executable, "-P", "-m", "stages.extract.isolated", *map(str, loaded_folders())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, "PYTHONPATH": path},
        )

    def reply(self, kind: str, content: bytes, seconds: float) -> dict[str, Any] | None:
        """The reply about a file; None where the process ends instead, or is killed after
        `seconds`."""
        process, timer = self._process, Timer(seconds, self._kill)
        assert process.stdin and process.stdout
        timer.start()
        try:
            asked = {"kind": kind, "bytes": len(content)}
            process.stdin.write(json.dumps(asked).encode() + b"\n" + content)
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            return None
        finally:
            timer.cancel()
        if not line.endswith(b"\n"):
            return None
        found: dict[str, Any] = json.loads(line)
        return found

    def _kill(self) -> None:
        self.is_late = True
        self._process.kill()

    def end(self) -> tuple[int, str]:
        """End the process; return its exit code and the last line of its standard error."""
        assert self._process.stdin and self._process.stdout
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.stdout.close()
        code = self._process.wait()
        with self._errors as errors:
            errors.seek(0)
            lines = errors.read().decode("utf-8", "replace").split("\n")
        return code, next((line for line in reversed(lines) if line.strip()), "")[:200]


def _serve() -> None:
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # libraries may print, which must not mix with replies
    for line in sys.stdin.buffer:
        asked = json.loads(line)
        reply = _reply(asked["kind"], sys.stdin.buffer.read(asked["bytes"]))
        replies.write(f"{json.dumps(reply)}\n")
        replies.flush()


def _reply(kind: str, content: bytes) -> dict[str, Any]:
    if kind not in EXTRACTORS:
        load_plugins(sys.argv[1:])
    try:
        found = EXTRACTORS[kind](content)
    except UnreadableError as wrong:
        return {"wrong": str(wrong)}
    except ImportError as missing:
        return {"wrong": f"needs {missing.name or missing}, which is not installed; {EXTRA}"}
    if not isinstance(found, Extracted):
        what = type(found).__name__
        return {"wrong": f"its extractor returned {what}; return Extracted"}
    return asdict(found)


if __name__ == "__main__":
    _serve()
