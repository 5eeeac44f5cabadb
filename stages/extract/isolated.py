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
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from signal import SIGKILL
from threading import Timer
from typing import Any, Self

from pipeline.core.registry import load_plugins, loaded_folders
from stages.extract import documents, pdf  # noqa: F401  # they register their extractors
from stages.extract.extracted import EXTRA, EXTRACTORS, Extracted, UnreadableError

_ROOT = Path(__file__).parents[2]
_MOST_MEMORY = 2**32  # bytes of address space


class Extractor:
    """A context manager. `seconds`: the time limit of one file."""

    def __init__(self, seconds: float = 600.0) -> None:
        self._seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._process:
            self._end(self._process)

    def extract(self, kind: str, content: bytes) -> Extracted:
        """The text of a file. `kind`: a key of EXTRACTORS. Raises UnreadableError where the file
        cannot be read, or its process has crashed."""
        process = self._process = self._process or self._start()
        assert process.stdin and process.stdout
        timer, started = Timer(self._seconds, process.kill), time.monotonic()
        line = b""
        timer.start()
        try:
            request = {"kind": kind, "bytes": len(content)}
            process.stdin.write(json.dumps(request).encode() + b"\n" + content)
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            pass
        finally:
            timer.cancel()
        if line.endswith(b"\n"):
            reply: dict[str, Any] = json.loads(line)
            if "wrong" in reply:
                raise UnreadableError(reply["wrong"])
            return Extracted(**reply)
        code, error = self._end(process)
        if time.monotonic() - started >= self._seconds:
            raise UnreadableError(f"not read within {self._seconds:.0f} s; fix or delete it")
        if code == -SIGKILL:
            why = "its process was killed, perhaps for lack of memory"
            raise UnreadableError(f"{why}; free some and try again")
        if error.startswith("MemoryError"):
            raise UnreadableError("takes over 4 GiB of memory; fix or delete it")
        raise UnreadableError(f"damaged ({error or f'exit code {code}'}); fetch it again")

    def _start(self) -> "subprocess.Popen[bytes]":
        path = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  # _end closes it
        return subprocess.Popen(
            # -P: no module of the folder that the command was started in.
            [sys.executable, "-P", "-m", "stages.extract.isolated", *map(str, loaded_folders())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, "PYTHONPATH": path},
        )

    def _end(self, process: "subprocess.Popen[bytes]") -> tuple[int, str]:
        """End the process; return its exit code and the last line of its standard error."""
        self._process = None
        with suppress(BrokenPipeError):
            process.communicate()
        with self._errors as errors:
            errors.seek(0)
            lines = errors.read().decode("utf-8", "replace").rstrip().split("\n")
        return process.returncode, lines[-1][:200]


def _serve() -> None:
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # libraries may print, which must not mix with replies
    for line in sys.stdin.buffer:
        request = json.loads(line)
        reply = _reply(request["kind"], sys.stdin.buffer.read(request["bytes"]))
        replies.write(f"{json.dumps(reply)}\n")
        replies.flush()


def _reply(kind: str, content: bytes) -> dict[str, Any]:
    if kind not in EXTRACTORS:
        load_plugins(sys.argv[1:])
    try:
        extracted = EXTRACTORS[kind](content)
    except UnreadableError as wrong:
        return {"wrong": str(wrong)}
    except ImportError as missing:
        return {"wrong": f"needs {missing.name or missing}, which is not installed; {EXTRA}"}
    if not isinstance(extracted, Extracted):
        what = type(extracted).__name__
        return {"wrong": f"its extractor returned {what}; return Extracted"}
    return asdict(extracted)


if __name__ == "__main__":
    _serve()
