"""A Ray of several processes with its dashboard on loopback, which asks for a token."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

import psutil

TOKEN = "a-token-of-the-tests-0123456789abcdef"
BIN = Path(sys.executable).parent


def free_ports(number: int) -> list[int]:
    """Ports of loopback that nobody has now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [opened.getsockname()[1] for opened in sockets]
    for opened in sockets:
        opened.close()
    return ports


def environment(token: str | None) -> dict[str, str]:
    """What a process is given that talks to the head, or is one of its own."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("RAY_")}
    own = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token} if token else {}
    return {**kept, **own, "PATH": f"{BIN}:{os.environ['PATH']}", "HOME": "/nonexistent"}


class RayHead:
    """Started by `start`; `end` ends its processes and no other."""

    def __init__(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="gm", dir="/tmp")  # short: sockets are below it
        port, dashboard, *others = free_ports(7)
        self.gcs = f"127.0.0.1:{port}"
        self.address = f"http://127.0.0.1:{dashboard}"
        names = (
            "dashboard-agent-listen-port", "dashboard-agent-grpc-port", "metrics-export-port",
            "runtime-env-agent-port", "ray-client-server-port",
        )  # fmt: skip
        self._command = [
            str(BIN / "ray"), "start", "--head", "--block", "--disable-usage-stats",
            "--node-ip-address=127.0.0.1", f"--port={port}", "--dashboard-host=127.0.0.1",
            f"--dashboard-port={dashboard}", "--num-cpus=2", f"--temp-dir={self.folder}",
            "--object-store-memory=100000000",
            *(f"--{name}={other}" for name, other in zip(names, others, strict=True)),
        ]  # fmt: skip
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Returns when jobs can be sent."""
        with (Path(self.folder) / "head.log").open("wb") as log:
            self._process = subprocess.Popen(
                self._command, env=environment(TOKEN), stdout=log, stderr=log
            )
        last = time.monotonic() + 90
        while not self._answers():
            assert self._process.poll() is None, (Path(self.folder) / "head.log").read_text()
            assert time.monotonic() < last, "the head does not come up"
            time.sleep(0.3)

    def _answers(self) -> bool:
        ask = urllib.request.Request(
            f"{self.address}/api/jobs/", headers={"Authorization": f"Bearer {TOKEN}"}
        )
        try:
            with urllib.request.urlopen(ask, timeout=10) as answer:
                return int(answer.status) == 200
        except (urllib.error.URLError, OSError):
            return False

    def end(self) -> None:
        if self._process:
            below = psutil.Process(self._process.pid).children(recursive=True)
            for process in [psutil.Process(self._process.pid), *below]:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
