"""A small run on a server of its own, which a test disturbs and starts again."""

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from tests.chaos.server import Server
from tests.support.command import ROOT
from tests.support.texts.small_corpus import UNIFORM, document, question, write

SEQUENCES = 4  # requests that one worker has at the server
MAX_WORKERS = 2
CALLS_OF_A_DOCUMENT = 31
_QUESTIONS = 4  # of a document
_SECONDS = 400.0  # after which a command hangs
_MARK = "GISTMILL_CHAOS"  # in the environment of all processes of a scenario
_TITLES = {
    "worker": "MapWorker", "raylet": "/raylet", "gcs": "/gcs_server", "monitor": "/log_monitor.py",
}  # fmt: skip
_FAST = {  # Ray notices sooner that a part of it is gone
    "RAY_gcs_rpc_server_reconnect_timeout_s": "5",
    "RAY_OVERRIDE_RESOURCES": '{"CPU": 1}',
}


def words(folder: Path, num_documents: int, *more: str) -> list[str]:
    """The run's words but for warehouse and server; its corpus lies in `folder`."""
    numbers = range(num_documents)
    questions = [question(_QUESTIONS * n + i, of=n) for n in numbers for i in range(_QUESTIONS)]
    write(folder / "corpus", [document(n) for n in numbers], questions)
    return [
        "run", "corpus=tables", f"corpus.path={folder / 'corpus'}", *UNIFORM, "run=night",
        "methods=gist_only,readagent_p(max_pages=1)", "engine=openai", "engine.model=m",
        f"engine.sequences={SEQUENCES}", f"engine.max_workers={MAX_WORKERS}",
        f"engine.min_workers={MAX_WORKERS}", "engine.cpus_per_worker=0.25", *more,
    ]  # fmt: skip


class Scenario:
    """Runs `words` in `folder`; of each command the exit code is returned. Its processes, and
    those of their Ray, are found by a mark, never by name."""

    def __init__(self, folder: Path, words: list[str], environment: Mapping[str, str] = {}) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._words = folder, words
        self.warehouse = folder / "warehouse"
        self.server = Server()
        self._mark = uuid.uuid4().hex
        self._environment = {**os.environ, **_FAST, **environment, _MARK: self._mark}

    def __enter__(self) -> "Scenario":
        self.server.__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        self.end_all()
        self.server.__exit__()

    def begin(self, *more: str) -> "subprocess.Popen[bytes]":
        """The command, under way."""
        url = f"engine.base_url={self.server.url}"
        return self._start(*self._words, f"warehouse={self.warehouse}", url, *more)

    def _start(self, *words: str) -> "subprocess.Popen[bytes]":
        """Any gistmill command, leader of a process group."""
        with (self._folder / "stderr").open("ab") as errors:
            return subprocess.Popen(
                [sys.executable, "-m", "gistmill", *words],
                cwd=ROOT,
                env=self._environment,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            )

    def command(self, *more: str) -> int:
        """The command to its end, which must come in time."""
        return self.end_of(self.begin(*more))

    def retry(self) -> int:
        """`gistmill retry` of the run."""
        return self.end_of(self._start("retry", "run=night", f"warehouse={self.warehouse}"))

    def end_of(
        self, driver: "subprocess.Popen[bytes]", look: Callable[[], Any] = lambda: None
    ) -> int:
        """Its exit code; `look` is called again and again until then."""
        last = time.monotonic() + _SECONDS
        while driver.poll() is None:
            time.sleep(0.02)
            look()
            assert time.monotonic() < last, f"hangs: {self.errors()[-2000:]}"
        return driver.returncode

    def until(self, number: int, driver: "subprocess.Popen[bytes]") -> None:
        """Wait until `number` requests have arrived, which must be before the command ends."""
        while len(self.server.asked) < number and driver.poll() is None:
            time.sleep(0.02)
        assert driver.poll() is None, self.errors()

    def midway(self, number: int, what: Callable[["subprocess.Popen[bytes]"], Any]) -> int:
        """Do it to the command once `number` requests have arrived; its exit code."""
        driver = self.begin()
        self.until(number, driver)
        what(driver)
        return self.end_of(driver)

    def errors(self) -> str:
        """All that the commands said."""
        return (self._folder / "stderr").read_text(errors="replace")

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
        """Kill whatever is left of the scenario, until there is nothing."""
        while left := self.of(""):
            for process in left:
                with suppress(psutil.Error):
                    process.kill()
            time.sleep(0.1)  # not psutil's wait, which would take the driver's exit code away


def stopped(process: Any, seconds: float) -> None:
    """Hold a process still for a while."""
    with suppress(psutil.Error, ProcessLookupError):
        process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        process.send_signal(signal.SIGCONT)
