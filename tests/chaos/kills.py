"""A run that is struck at seeded moments and started again until it is complete."""

import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from tests.chaos import limits
from tests.chaos.processes import Processes, Server, stopped
from tests.chaos.tables import Tables, difference, tables
from tests.support.texts.small_corpus import UNIFORM, document, question, write

# Each is a SIGKILL, but for the last two.
STRIKES = (
    "driver", "worker", "server", "raylet", "gcs", "monitor", "group", "cluster", "term", "stop",
)  # fmt: skip
NO_KILLS = ("term", "stop")
_SECONDS_STOPPED = 5.0
_SECONDS_OF_A_LAUNCH = 400.0
_QUESTIONS = 4  # of a document; a document takes 31 calls


@dataclass
class KillFigures:
    """Of one trial."""

    seed: int
    struck: list[str] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)  # exit codes of the launches
    lost: int = 0
    doubled: int = 0
    changed: int = 0
    calls: int = 0
    repeated: int = 0

    @property
    def kills(self) -> int:
        return sum(kind not in NO_KILLS for kind in self.struck)


def words(folder: Path, num_documents: int, *more: str) -> list[str]:
    """The run's words but for warehouse and server; its corpus lies in `folder`."""
    numbers = range(num_documents)
    asked = [question(_QUESTIONS * n + i, of=n) for n in numbers for i in range(_QUESTIONS)]
    write(folder / "corpus", [document(n) for n in numbers], asked)
    return [
        "run", "corpus=tables", f"corpus.path={folder / 'corpus'}", *UNIFORM, "run=night",
        "methods=gist_only,readagent_p(max_pages=1)", "engine=openai", "engine.model=m",
        f"engine.sequences={limits.SEQUENCES}", f"engine.max_workers={limits.MAX_WORKERS}",
        f"engine.min_workers={limits.MAX_WORKERS}", "engine.cpus_per_worker=0.25", *more,
    ]  # fmt: skip


class KillTrial:
    """One run, struck by `kinds` in turn. `asked`: the requests of an undisturbed run."""

    def __init__(self, folder: Path, words: list[str], seed: int, kinds: list[str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.warehouse = folder / "warehouse"
        self.processes, self._server = Processes(folder), Server(folder / "server")
        self._words = [*words, f"warehouse={self.warehouse}", f"engine.base_url={self._server.url}"]
        self._draw = random.Random(seed)
        self._kinds = kinds
        self.figures = KillFigures(seed)

    def run(self, asked: Counter[str], whole: Tables) -> KillFigures:
        """Strike, start again until complete, and compare."""
        most = int(asked.total() * 0.9)
        moments = sorted(self._draw.randint(1, most) for _ in self._kinds)
        strikes = list(zip(moments, self._kinds, strict=True))
        try:
            with self._server:
                while self._launch(strikes) != 0:
                    tried = len(self.figures.ends)
                    assert tried < 3 * len(self._kinds) + 3, self.processes.errors()
                asked_before = self._server.num_asked()
                assert self._launch([]) == 0, "once more, with nothing to do"
                assert self._server.num_asked() == asked_before
        finally:
            self.processes.end_all()
        found = difference(whole, tables(self.warehouse))
        own = self._server.asked()
        self.figures.lost, self.figures.doubled = len(found.lost), len(found.doubled)
        self.figures.changed = len(found.changed) + len(found.added)
        self.figures.calls, self.figures.repeated = own.total(), (own - asked).total()
        return self.figures

    def undisturbed(self) -> tuple[Counter[str], Tables]:
        """The requests and the tables of a run that nothing strikes."""
        try:
            with self._server:
                assert self._launch([]) == 0, self.processes.errors()
        finally:
            self.processes.end_all()
        return self._server.asked(), tables(self.warehouse)

    def _launch(self, strikes: list[tuple[int, str]]) -> int:
        """One command to its end; takes the strikes it met off the list."""
        driver = self.processes.start(*self._words)
        last = time.monotonic() + _SECONDS_OF_A_LAUNCH
        while driver.poll() is None:
            time.sleep(0.02)
            assert time.monotonic() < last, self.processes.errors()
            if strikes and self._server.num_asked() >= strikes[0][0]:
                _, kind = strikes[0]
                if self._strike(kind, driver):
                    self.figures.struck.append(kind)
                    strikes.pop(0)
        if self._draw.random() < 0.5:  # else its workers live on beside those of the next
            self.processes.end_all()
        self.figures.ends.append(driver.returncode)
        return driver.returncode

    def _strike(self, kind: str, driver: "subprocess.Popen[bytes]") -> bool:
        """False where the command, struck just before, ends without such a process."""
        whole: dict[str, Callable[[], object]] = {
            "driver": driver.kill,
            "group": lambda: os.killpg(driver.pid, signal.SIGKILL),
            "cluster": self.processes.end_all,
            "server": self._server_dies,
            "term": driver.terminate,
            "stop": lambda: stopped(self._victim(driver), _SECONDS_STOPPED),
        }
        with suppress(psutil.Error, ProcessLookupError):
            if kind in whole:
                whole[kind]()
            elif found := self._wait_for(kind, driver):
                self._draw.choice(found).kill()
            else:
                return False
        return True

    def _victim(self, driver: "subprocess.Popen[bytes]") -> Any:
        return self._draw.choice([driver, *self.processes.of("worker")])

    def _wait_for(self, kind: str, driver: "subprocess.Popen[bytes]") -> list[psutil.Process]:
        """The processes of a kind; a worker may just be starting again. Empty where the command
        ends first."""
        last = time.monotonic() + _SECONDS_OF_A_LAUNCH
        while not (found := self.processes.of(kind)) and driver.poll() is None:
            time.sleep(0.1)
            assert time.monotonic() < last, f"no {kind}"
        return found

    def _server_dies(self) -> None:
        self._server.kill()
        time.sleep(1)
        self._server.start()
