"""Small runs under one fault each, and the same command again without it.

Poisonous units, engines that die or never start are in tests/faults/test_faults.py, nodes that come
and go in tests/faults/test_nodes.py; `make chaos` runs those files, too.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.processes import stopped
from tests.chaos.scenario import CALLS_OF_A_DOCUMENT, Scenario, words
from tests.chaos.tables import Tables, contents, difference, tables
from tests.support.clusters.ray_head import TOKEN, RayHead, environment
from tests.support.faulty_storage import environment_with

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(1200)]

Start = Callable[..., Scenario]
CLOCK = Path(__file__).with_name("clock")
DOCUMENTS = 6
MIDWAY = 60  # requests
COMPLETE, NO_SERVER, PROBLEMS, INCOMPLETE = 0, 1, 3, 4
MINUTE = 60.0


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    patient = ("engine.deadline_seconds=20.0", "max_problem_rate=1.0")
    return words(tmp_path_factory.mktemp("corpus"), DOCUMENTS, *patient)


@pytest.fixture(scope="module")
def whole(command: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The warehouse of an undisturbed run."""
    with Scenario(tmp_path_factory.mktemp("whole"), command) as run:
        assert run.command() == COMPLETE, run.processes.errors()
        assert run.server.num_asked() == DOCUMENTS * CALLS_OF_A_DOCUMENT
        return run.warehouse


@pytest.fixture
def start(
    command: list[str], tmp_path: Path, request: pytest.FixtureRequest, figures: Any
) -> Iterator[Start]:
    """Begins the test's run; its figures are printed under the test's name."""
    began, name = time.monotonic(), request.node.name.removeprefix("test_")
    with ExitStack() as stack:
        runs: list[Scenario] = []

        def started(environment: Mapping[str, str] = {}) -> Scenario:
            runs.append(stack.enter_context(Scenario(tmp_path, command, environment)))
            return runs[0]

        yield started
        calls = runs[0].server.num_asked()
    figures(what="scenarios", calls=calls, seconds=int(time.monotonic() - began), name=name)


def finish(run: Scenario, whole: Path, *more: str) -> None:
    """The same command completes the run, with the rows of the undisturbed one."""
    assert run.command(*more) == COMPLETE, run.processes.errors()
    assert not difference(tables(whole), tables(run.warehouse))


@pytest.mark.parametrize("mode", ["away", "hang", "drip", "garbage", "empty", "cut"])
def test_replies(mode: str, whole: Path, start: Start) -> None:
    """A dozen requests are not answered as they should; later ones are."""
    run = start()
    run.server.mode(mode, 12)
    quick = ("engine.deadline_seconds=3.0", "engine.retries=1")
    assert run.command(*quick) in (COMPLETE, PROBLEMS, INCOMPLETE), run.processes.errors()
    assert "Traceback" not in run.processes.errors()
    run.server.mode("", 0)
    # A reply without a text is one that cannot be read: only `retry` asks again.
    again = run.retry if mode == "empty" else run.command
    assert again() == COMPLETE, run.processes.errors()
    assert not difference(contents(whole), contents(run.warehouse))


@pytest.mark.parametrize("mode", ["huge", "of_another"])
def test_replies_that_are_not_what_was_asked_for(mode: str, whole: Path, start: Start) -> None:
    """Three million characters, or what another request was replied, are a reply: the rows that
    rest on it are others, none is lost."""
    run = start()
    code = run.midway(1, lambda driver: run.server.mode(mode, 12))
    assert code in (COMPLETE, PROBLEMS), run.processes.errors()
    assert run.command() in (COMPLETE, PROBLEMS), run.processes.errors()
    assert "Traceback" not in run.processes.errors()

    def answered(warehouse: Path) -> Tables:
        """The tables whose keys no reply decides."""
        return {**contents(warehouse), "lookups": {}, "scores": {}, "ratings": {}}

    wrong = difference(answered(whole), answered(run.warehouse))
    assert not wrong.lost + wrong.doubled + wrong.added


def stands_still(who: str) -> Callable[[Scenario, Any], None]:
    """For a minute, after which Ray may have given a part of itself up."""
    return lambda run, driver: stopped(
        driver if who == "driver" else run.processes.of(who)[0], MINUTE
    )


MIDWAY_OF_A_RUN: dict[str, Callable[[Scenario, Any], None]] = {
    # While its actor lives; requests are refused.
    "the_engine_is_dead_for_three_seconds": lambda run, driver: run.server.away(3.0),
    **{f"the_{who}_stands_still": stands_still(who) for who in ("driver", "worker", "raylet")},
}


@pytest.mark.parametrize("what", MIDWAY_OF_A_RUN)
def test_in_the_midst_of_it(what: str, whole: Path, start: Start) -> None:
    run = start()
    run.midway(MIDWAY, lambda driver: MIDWAY_OF_A_RUN[what](run, driver))
    finish(run, whole)


def test_the_engine_does_not_start_twice(whole: Path, start: Start) -> None:
    run = start()
    run.server.kill()
    for _ in range(2):
        assert run.command() == NO_SERVER
        assert run.server.url in run.one_line()
    run.server.start()
    finish(run, whole)


def test_the_clock_jumps(whole: Path, start: Start) -> None:
    """By an hour, forward and back, in all processes of the run."""
    run = start({"PYTHONPATH": str(CLOCK)})
    finish(run, whole)
    assert run.server.num_asked() == DOCUMENTS * CALLS_OF_A_DOCUMENT


def test_the_cluster_is_gone_and_another_goes_on_elsewhere(whole: Path, start: Start) -> None:
    """Every process of the first is killed; the warehouse is moved before the second comes."""
    run = start(environment(TOKEN))
    with _head() as address:
        driver = run.begin("cluster=ray", f"cluster.address={address}")
        run.until(MIDWAY, driver)
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()
    run.move()
    with _head() as address:
        finish(run, whole, "cluster=ray", f"cluster.address={address}")


@contextmanager
def _head() -> Iterator[str]:
    """The address of a Ray whose processes are killed in the end."""
    head = RayHead()
    try:
        head.start()
        yield head.gcs
    finally:
        head.end()


FAULTS: dict[str, list[dict[str, Any]]] = {
    "full": [{"operation": "write", "errno": "ENOSPC", "skip": 30}],
    "read_only": [
        {"operation": operation, "errno": "EROFS", "skip": 20}
        for operation in ("open", "link", "mkdir", "unlink", "replace")
    ],
    "flaky": [
        {"operation": operation, "errno": "EIO", "skip": skip, "times": 2}
        for operation, skip in (("link", 12), ("fsync", 25), ("open", 60), ("replace", 30))
    ],
    "slow": [{"operation": "fsync", "seconds": 0.1}, {"operation": "open", "seconds": 0.05}],
    # As NFS, where the answer to an operation is lost and the client sends it again.
    "answers_lost": [
        {"operation": operation, "errno": errno, "skip": skip, "times": 4, "is_done": True}
        for operation, errno, skip in (
            ("link", "EEXIST", 5),
            ("replace", "ENOENT", 9),
            ("unlink", "ENOENT", 7),
            ("mkdir", "EEXIST", 3),
        )
    ],
    # As NFS, where a file that another machine has replaced is open.
    "stale": [
        {"operation": operation, "errno": "ESTALE", "skip": skip, "times": 3}
        for operation, skip in (("read", 40), ("stat", 90), ("listdir", 20), ("replace", 15))
    ],
}
SURVIVED = ("flaky", "slow", "answers_lost", "stale")


@pytest.mark.parametrize("fault", FAULTS)
def test_storage(fault: str, whole: Path, tmp_path: Path, start: Start) -> None:
    """That fails from some operation on, in every process; afterwards it is sound again."""
    over = tmp_path / "over"
    faults = [{**each, "path": "*/warehouse/*", "until": str(over)} for each in FAULTS[fault]]
    run = start(environment_with(faults))
    code = run.command()
    assert code == (COMPLETE if fault in SURVIVED else INCOMPLETE), run.processes.errors()
    assert run.one_line()
    over.touch()
    finish(run, whole)
