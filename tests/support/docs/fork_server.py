"""A command `gistmill` for the pages of docs that takes no second to start: a process that has
imported gistmill forks for each. It works without Ray; README's commands run with it."""

import json
import os
import signal
import socket
import subprocess
import sys
from importlib import import_module
from pathlib import Path

from jobs.cli import main
from pipeline.core.plugins import load_plugins
from tests.support.command import ROOT, without_ray

_IMPORTED = ("jobs.run.launch", "jobs.html.show_html", "pipeline.worker.worker")
_MOST = 2**20  # bytes of a command's words and environment
# What asks: it sends its words, folder, environment and standard streams, and ends as told.
_COMMAND = """#!{python} -SE
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    asked = [sys.argv[1:], os.getcwd(), dict(os.environ)]
    socket.send_fds(server, [json.dumps(asked).encode()], [0, 1, 2])
    server.shutdown(socket.SHUT_WR)
    told = server.recv(8)
os._exit(int(told or b"70"))
"""


class ForkServer:
    """The process, started; `bin`: a folder with the command."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.bin.mkdir()
        address = str(folder / "socket")
        command = self.bin / "gistmill"
        command.write_text(_COMMAND.format(python=sys.executable, address=address))
        command.chmod(0o755)
        server = [sys.executable, "-m", "tests.support.docs.fork_server", address]
        self._process = subprocess.Popen(server, cwd=ROOT, stdout=subprocess.PIPE)
        assert self._process.stdout and self._process.stdout.readline() == b"ready\n"

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


def _serve(address: str) -> None:
    for name in _IMPORTED:
        import_module(name)
    load_plugins([])
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
    words, folder, environment = json.loads(asked)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["gistmill", *without_ray(*words)]
    code = 1
    try:
        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return code


if __name__ == "__main__":
    _serve(sys.argv[1])
