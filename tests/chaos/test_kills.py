"""Runs whose processes are killed, at seeded moments, and which are started again until they are
complete: they end as an undisturbed run, and repeat only calls that were in flight."""

import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

import psutil
import pytest

from tests.chaos.scenario import (
    CALLS_OF_A_DOCUMENT,
    MAX_WORKERS,
    SEQUENCES,
    Scenario,
    stopped,
    words,
)
from tests.chaos.tables import Rows, difference, rows

Whole = tuple[list[str], Counter[str], Rows]
Process = subprocess.Popen[bytes]
STRIKES = (
    "driver", "worker", "server", "raylet", "gcs", "monitor", "group", "cluster", "term", "stop",
)  # fmt: skip
SECONDS_STOPPED, SECONDS_TO_APPEAR = 5.0, 400.0


class KillTrial:
    """One run, struck by `kinds` in turn, in the first three quarters of its requests."""

    def __init__(self, run: Scenario, num_calls: int, seed: int, kinds: list[str]) -> None:
        self._run, self._draw = run, random.Random(seed)
        moments = sorted(self._draw.randint(1, int(num_calls * 0.75)) for _ in kinds)
        self.strikes = list(zip(moments, kinds, strict=True))
        self.num_launches = 0

    def launch(self) -> int:
        """One command to its end; takes the strikes that it met off the list."""
        self.num_launches += 1
        driver = self._run.begin()
        code = self._run.end_of(driver, lambda: self._strike_in_time(driver))
        if self._draw.random() < 0.5:  # else its workers live on beside those of the next
            self._run.end_all()
        return code

    def _strike_in_time(self, driver: Process) -> None:
        is_due = self.strikes and len(self._run.server.asked) >= self.strikes[0][0]
        if is_due and self._strike(self.strikes[0][1], driver):
            self.strikes.pop(0)

    def _strike(self, kind: str, driver: Process) -> bool:
        """False where the command, struck just before, ends without such a process."""
        run = self._run
        whole: dict[str, Callable[[], object]] = {
            "driver": driver.kill,
            "group": lambda: os.killpg(driver.pid, signal.SIGKILL),
            "cluster": run.end_all,
            "server": lambda: run.server.away(1.0),
            "term": driver.terminate,
            "stop": lambda: stopped(
                self._draw.choice([driver, *run.of("worker")]), SECONDS_STOPPED
            ),
        }
        with suppress(psutil.Error, ProcessLookupError):
            if kind in whole:
                whole[kind]()
            elif processes := self._wait_for(kind, driver):
                self._draw.choice(processes).kill()
            else:
                return False
        return True

    def _wait_for(self, kind: str, driver: Process) -> list[psutil.Process]:
        """The processes of a kind; a worker may just be starting again. Empty where the command
        ends first."""
        last = time.monotonic() + SECONDS_TO_APPEAR
        while not (processes := self._run.of(kind)) and driver.poll() is None:
            time.sleep(0.1)
            assert time.monotonic() < last, f"no {kind}"
        return processes


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Whole]:
    """The words of a run over so many documents, its requests and its rows."""

    @cache
    def finished(num_documents: int) -> Whole:
        folder = tmp_path_factory.mktemp("whole")
        command = words(folder, num_documents)
        with Scenario(folder / "whole", command) as run:
            assert run.command() == 0, run.errors()
        calls = run.server.calls()
        assert calls.total() == CALLS_OF_A_DOCUMENT * num_documents
        return command, calls, rows(run.warehouse)

    return finished


SHORT = [(5, 16, ["worker", "driver", "server", "raylet", "cluster"])]
FULL = [(seed, 64, random.Random(seed).sample(STRIKES, len(STRIKES))) for seed in range(6)]
LONG = [pytest.mark.chaos, pytest.mark.timeout(1800)]


@pytest.mark.parametrize(
    ("seed", "num_documents", "kinds"),
    [
        *(pytest.param(*each, marks=[pytest.mark.slow, pytest.mark.sampled]) for each in SHORT),
        *(pytest.param(*each, marks=LONG) for each in FULL),
    ],
)
def test_a_run_is_struck(
    seed: int,
    num_documents: int,
    kinds: list[str],
    undisturbed: Callable[[int], Whole],
    tmp_path: Path,
) -> None:
    """And started again until it is complete."""
    command, calls, expected = undisturbed(num_documents)
    with Scenario(tmp_path, command) as run:
        trial = KillTrial(run, calls.total(), seed, kinds)
        while trial.launch() != 0:
            assert trial.num_launches < 3 * len(kinds) + 3, run.errors()
        assert not trial.strikes, "all have struck"
        repeated = (run.server.calls() - calls).total()
        num_asked = len(run.server.asked)
        assert run.command() == 0, "once more, with nothing to do"
        assert len(run.server.asked) == num_asked
    assert difference(expected, rows(run.warehouse)) == []
    assert repeated <= SEQUENCES * MAX_WORKERS * len(kinds), "what was in flight"
