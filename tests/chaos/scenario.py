"""One small run under one fault, and the same command again without it."""

import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil

from tests.chaos.processes import Processes, Server

_SECONDS = 400.0


class Scenario:
    """Runs `words` in `folder`; of each command the exit code is returned."""

    def __init__(self, folder: Path, words: list[str], environment: Mapping[str, str] = {}) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._words = folder, words
        self.warehouse = folder / "warehouse"
        self.server = Server(folder / "server")
        self.processes = Processes(folder, environment)

    def __enter__(self) -> "Scenario":
        self.server.__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        self.server.kill()
        self.processes.end_all()

    def begin(self, *more: str) -> "subprocess.Popen[bytes]":
        """The command, under way."""
        place = (f"warehouse={self.warehouse}", f"engine.base_url={self.server.url}")
        return self.processes.start(*self._words, *place, *more)

    def command(self, *more: str) -> int:
        """The command to its end, which must come in time."""
        return self.end_of(self.begin(*more))

    def retry(self) -> int:
        """`gistmill retry` of the run."""
        return self.end_of(
            self.processes.start("retry", "run=night", f"warehouse={self.warehouse}")
        )

    def end_of(self, driver: "subprocess.Popen[bytes]") -> int:
        try:
            return driver.wait(_SECONDS)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"hangs: {self.processes.errors()[-2000:]}") from None

    def midway(self, number: int, what: Callable[["subprocess.Popen[bytes]"], Any]) -> int:
        """Do it to the command once `number` requests have arrived; its exit code."""
        driver = self.begin()
        while self.server.num_asked() < number and driver.poll() is None:
            time.sleep(0.02)
        assert driver.poll() is None, self.processes.errors()
        what(driver)
        return self.end_of(driver)

    def move(self) -> None:
        """The warehouse to another folder, as copies of it go to other machines."""
        elsewhere = self._folder / "elsewhere"
        shutil.move(self.warehouse, elsewhere)
        self.warehouse = elsewhere

    def worker(self) -> psutil.Process:
        return self.processes.of("worker")[0]

    def one_line(self) -> str:
        """The last thing that the commands said; there must be no traceback."""
        errors = self.processes.errors()
        assert "Traceback" not in errors, errors
        return [line for line in errors.splitlines() if line.strip()][-1]
