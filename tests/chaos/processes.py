"""The processes of one trial: its commands, their Ray, its server; found by a mark, never by name.

The mark is an environment variable that every process below a command inherits.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
import uuid
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from tests.support.clusters.ray_head import free_ports
from tests.support.command import ROOT

_MARK = "GISTMILL_CHAOS"
_TITLES = {
    "worker": "MapWorker", "raylet": "/raylet", "gcs": "/gcs_server", "monitor": "/log_monitor.py",
}  # fmt: skip
_FAST = {  # Ray notices sooner that a part of it is gone
    "RAY_gcs_rpc_server_reconnect_timeout_s": "5",
    "RAY_OVERRIDE_RESOURCES": '{"CPU": 1}',
}


class Processes:
    """Those of one trial. `environment` is for the commands; `folder` takes their output."""

    def __init__(self, folder: Path, environment: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self._mark = uuid.uuid4().hex
        self._environment = {**os.environ, **_FAST, **(environment or {}), _MARK: self._mark}

    def start(self, *words: str | Path) -> "subprocess.Popen[bytes]":
        """The gistmill command, leader of a process group."""
        with (self.folder / "stderr").open("ab") as errors:
            return subprocess.Popen(
                [sys.executable, "-m", "jobs", *map(str, words)],
                cwd=ROOT,
                env=self._environment,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            )

    def errors(self) -> str:
        """All that the trial's commands said."""
        return (self.folder / "stderr").read_text(errors="replace")

    def of(self, kind: str) -> list[psutil.Process]:
        """The processes of a kind: worker, raylet, gcs, monitor; all with `""`."""
        processes = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                is_marked = process.environ().get(_MARK) == self._mark
                if is_marked and _TITLES.get(kind, "") in " ".join(process.cmdline()):
                    processes.append(process)
        return processes

    def end_all(self) -> None:
        """Kill whatever is left of the trial, until there is nothing."""
        while left := self.of(""):
            for process in left:
                with suppress(psutil.Error):
                    process.kill()
            time.sleep(0.1)  # not psutil's wait, which would take the driver's exit code away


class Server:
    """The server of tests/chaos/server.py; `folder` keeps what it was asked over its deaths."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (self._port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{self._port}/v1"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "Server":
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / "asked").touch()
        self.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self.kill()

    def start(self) -> None:
        """Returns when it listens."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.server", str(self._port), self._folder],
            cwd=ROOT,
            stderr=subprocess.DEVNULL,  # of clients that are killed
        )
        while self._process.poll() is None:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self._port), 1):
                return
            time.sleep(0.05)
        raise RuntimeError("the server does not come up")

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def away(self, seconds: float) -> None:
        """Kill it, and start it again after so long."""
        self.kill()
        time.sleep(seconds)
        self.start()

    def mode(self, mode: str, number: int) -> None:
        """Treat the next `number` requests so; the modes are in tests/chaos/server.py."""
        body = json.dumps({"mode": mode, "number": number}).encode()
        address = self.url.removesuffix("/v1") + "/mode"
        headers = {"Content-Type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(address, body, headers), timeout=10):
            pass

    def asked(self) -> Counter[str]:
        """How often each request arrived."""
        return Counter((self._folder / "asked").read_text().split())

    def num_asked(self) -> int:
        """The requests that arrived; each is a line of 17 bytes."""
        return (self._folder / "asked").stat().st_size // 17


def stopped(process: Any, seconds: float) -> None:
    """Hold a process still for a while."""
    with suppress(psutil.Error, ProcessLookupError):
        process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        process.send_signal(signal.SIGCONT)
