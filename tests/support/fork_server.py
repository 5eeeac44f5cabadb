"""Commands in processes of their own, forked by one that has imported gistmill; without Ray. Each
is "gistmill" and its words, or "-c", code, and its words."""

import atexit
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from subprocess import CompletedProcess
from tempfile import TemporaryFile
from typing import IO

from jobs.cli import main
from pipeline.core.compose import compose
from pipeline.core.registry import load_plugins
from tests.support.without_ray import without_ray

_ROOT = Path(__file__).parents[2]
_IMPORTED = (
    "gistmill.testing", "jobs.html.serve", "jobs.run.launch", "pandas",
    "pytest", "pipeline.worker.worker", "rouge_score.rouge_scorer",
)  # fmt: skip
_MOST = 2**20  # bytes of a command's words and environment
# What asks: it sends its words, folder, environment and standard streams, and ends as told.
_COMMAND = """#!{python} -SE
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    asked = [["gistmill", *sys.argv[1:]], os.getcwd(), dict(os.environ)]
    socket.send_fds(server, [json.dumps(asked).encode()], [0, 1, 2])
    server.shutdown(socket.SHUT_WR)
    told = server.recv(8)
os._exit(int(told or b"1"))
"""


class ForkServer:
    """The process, started; `bin`: a folder with the command `gistmill`."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.bin.mkdir()
        self._address = str(folder / "socket")
        command = self.bin / "gistmill"
        command.write_text(_COMMAND.format(python=sys.executable, address=self._address))
        command.chmod(0o755)
        server = [sys.executable, "-m", "tests.support.fork_server", self._address]
        self._process = subprocess.Popen(server, cwd=_ROOT, stdout=subprocess.PIPE)
        assert self._process.stdout and self._process.stdout.readline() == b"ready\n"

    def end(self) -> None:
        self._process.kill()
        self._process.wait()

    def start(
        self, command: Sequence[str], folder: Path, environment: Mapping[str, str], *streams: int
    ) -> socket.socket:
        """Start the command with these standard streams; what it returns is for `exit_code`."""
        asking = socket.socket(socket.AF_UNIX)
        asking.connect(self._address)
        asked = json.dumps([[*command], str(folder), {**os.environ, **environment}])
        socket.send_fds(asking, [asked.encode()], streams)
        asking.shutdown(socket.SHUT_WR)
        return asking


def exit_code(asking: socket.socket, timeout: float = 300) -> int:
    """That of a started command, once it has ended."""
    with asking:
        asking.settimeout(timeout)
        return int(asking.recv(8) or b"1")


@cache
def started() -> ForkServer:
    """The one that the tests of this process share."""
    folder = tempfile.TemporaryDirectory()
    made = ForkServer(Path(folder.name))
    atexit.register(folder.cleanup)
    atexit.register(made.end)
    return made


def forked(
    *command: str, folder: Path = _ROOT, timeout: float = 300, **environment: str
) -> "CompletedProcess[str]":
    """The command, ended, as `subprocess.run` returns one; it has our environment and this."""
    with TemporaryFile() as out, TemporaryFile() as err, Path(os.devnull).open("rb") as nothing:
        streams = [stream.fileno() for stream in (nothing, out, err)]
        code = exit_code(started().start(command, folder, environment, *streams), timeout)
        return CompletedProcess(command, code, _text(out), _text(err))


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


def _serve(address: str) -> None:
    for name in _IMPORTED:
        import_module(name)
    load_plugins([])
    compose([])  # Hydra looks for its own plugins once
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            asking, _ = server.accept()
            if os.fork() == 0:
                server.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                asking.sendall(str(_execute(asking)).encode())
                os._exit(0)
            asking.close()


def _execute(asking: socket.socket) -> int:
    """Execute the command that is asked for, as its own process would; its exit code."""
    asked, streams, _, _ = socket.recv_fds(asking, _MOST, 3)
    while part := asking.recv(_MOST):
        asked += part
    (name, *words), folder, environment = json.loads(asked)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    code = 1
    try:
        if name == "-c":
            sys.argv = [name, *words[1:]]
            sys.path.insert(0, "")
            exec(words[0], {"__name__": "__main__"})
        else:
            sys.argv = [name, *without_ray(*words)]
            main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    return code


if __name__ == "__main__":
    _serve(sys.argv[1])
