"""A small run on a server of its own, which a test disturbs and starts again."""

import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.chaos.processes import Processes, Server
from tests.support.texts.small_corpus import UNIFORM, document, question, write

SEQUENCES = 4  # requests that one worker has at the server
MAX_WORKERS = 2
CALLS_OF_A_DOCUMENT = 31
_QUESTIONS = 4  # of a document
_SECONDS = 400.0


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
        words = (f"warehouse={self.warehouse}", f"engine.base_url={self.server.url}")
        return self.processes.start(*self._words, *words, *more)

    def command(self, *more: str) -> int:
        """The command to its end, which must come in time."""
        return self.end_of(self.begin(*more))

    def retry(self) -> int:
        """`gistmill retry` of the run."""
        return self.end_of(
            self.processes.start("retry", "run=night", f"warehouse={self.warehouse}")
        )

    def end_of(
        self, driver: "subprocess.Popen[bytes]", look: Callable[[], Any] = lambda: None
    ) -> int:
        """Its exit code; `look` is called again and again until then."""
        last = time.monotonic() + _SECONDS
        while driver.poll() is None:
            time.sleep(0.02)
            look()
            assert time.monotonic() < last, f"hangs: {self.processes.errors()[-2000:]}"
        return driver.returncode

    def until(self, number: int, driver: "subprocess.Popen[bytes]") -> None:
        """Wait until `number` requests have arrived, which must be before the command ends."""
        while self.server.num_asked() < number and driver.poll() is None:
            time.sleep(0.02)
        assert driver.poll() is None, self.processes.errors()

    def midway(self, number: int, what: Callable[["subprocess.Popen[bytes]"], Any]) -> int:
        """Do it to the command once `number` requests have arrived; its exit code."""
        driver = self.begin()
        self.until(number, driver)
        what(driver)
        return self.end_of(driver)

    def move(self) -> None:
        """The warehouse to another folder, as copies of it go to other machines."""
        elsewhere = self._folder / "elsewhere"
        shutil.move(self.warehouse, elsewhere)
        self.warehouse = elsewhere

    def one_line(self) -> str:
        """The last thing that the commands said; there must be no traceback."""
        errors = self.processes.errors()
        assert "Traceback" not in errors, errors
        return [line for line in errors.splitlines() if line.strip()][-1]
