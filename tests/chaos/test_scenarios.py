"""Small runs under one fault each, and the same command again without it.

Poisonous units, engines that die or never start are in tests/faults/test_faults.py, nodes that come
and go in tests/faults/test_nodes.py; `make chaos` runs those files, too.
"""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.kills import words
from tests.chaos.processes import stopped
from tests.chaos.scenario import Scenario
from tests.chaos.tables import Tables, contents, difference, tables
from tests.support.clusters.ray_head import TOKEN, RayHead, environment
from tests.support.command import ROOT

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(1200)]

Add = Callable[..., None]
CLOCK, STORAGE = ROOT / "tests" / "chaos" / "clock", ROOT / "tests" / "support" / "faulty_storage"
DOCUMENTS, CALLS = 6, 186
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
        assert run.server.num_asked() == CALLS
        return run.warehouse


@pytest.fixture
def add(request: pytest.FixtureRequest, figures: Add) -> Iterator[Callable[[Scenario], None]]:
    """The figures of a scenario under the test's name; `seconds` with its setup."""
    began = time.monotonic()
    found: list[Scenario] = []
    yield found.append
    (run,) = found
    figures(
        what="scenarios",
        calls=run.server.num_asked(),
        seconds=int(time.monotonic() - began),
        name=request.node.name.removeprefix("test_"),
    )


def same(whole: Path, run: Scenario) -> None:
    assert not difference(tables(whole), tables(run.warehouse))


@pytest.mark.parametrize("mode", ["away", "hang", "drip", "garbage", "empty", "cut"])
def test_replies(
    mode: str, command: list[str], whole: Path, tmp_path: Path, add: Callable[[Scenario], None]
) -> None:
    """A dozen requests are not answered as they should; later ones are."""
    with Scenario(tmp_path, command) as run:
        add(run)
        run.server.mode(mode, 12)
        quick = ("engine.deadline_seconds=3.0", "engine.retries=1")
        assert run.command(*quick) in (COMPLETE, PROBLEMS, INCOMPLETE), run.processes.errors()
        assert "Traceback" not in run.processes.errors()
        run.server.mode("", 0)
        # A reply without a text is one that cannot be read: only `retry` asks again.
        again = run.retry if mode == "empty" else run.command
        assert again() == COMPLETE, run.processes.errors()
        found = difference(contents(whole), contents(run.warehouse))
    assert not found


@pytest.mark.parametrize("mode", ["huge", "of_another"])
def test_replies_that_are_not_what_was_asked_for(
    mode: str, command: list[str], whole: Path, tmp_path: Path, add: Callable[[Scenario], None]
) -> None:
    """Three million characters, or what another request was replied, are a reply: the rows that
    rest on it are others, none is lost."""
    with Scenario(tmp_path, command) as run:
        add(run)

        def treat_badly(driver: object) -> None:
            run.server.mode(mode, 12)

        assert run.midway(1, treat_badly) in (COMPLETE, PROBLEMS), run.processes.errors()
        assert run.command() in (COMPLETE, PROBLEMS), run.processes.errors()
        assert "Traceback" not in run.processes.errors()
        found = difference(_answered(whole), _answered(run.warehouse))
    assert not found.lost + found.doubled + found.added


def _answered(warehouse: Path) -> Tables:
    """The tables whose keys no reply decides."""
    found, decided = contents(warehouse), ("lookups", "scores", "ratings")
    return {**found, **{table: {} for table in decided}}


def test_the_engine_is_dead_while_its_actor_lives(
    command: list[str], whole: Path, tmp_path: Path, add: Callable[[Scenario], None]
) -> None:
    """For three seconds, in which requests are refused."""
    with Scenario(tmp_path, command) as run:
        add(run)

        def away(driver: object) -> None:
            run.server.kill()
            time.sleep(3)
            run.server.start()

        run.midway(MIDWAY, away)
        assert run.command() == COMPLETE, run.processes.errors()
        same(whole, run)


def test_the_engine_does_not_start_twice(
    command: list[str], whole: Path, tmp_path: Path, add: Callable[[Scenario], None]
) -> None:
    with Scenario(tmp_path, [*command]) as run:
        add(run)
        run.server.kill()
        for _ in range(2):
            assert run.command() == NO_SERVER
            assert run.server.url in run.one_line()
        run.server.start()
        assert run.command() == COMPLETE, run.processes.errors()
        same(whole, run)


@pytest.mark.parametrize("who", ["driver", "worker", "raylet"])
def test_it_stands_still(
    who: str, command: list[str], whole: Path, tmp_path: Path, add: Callable[[Scenario], None]
) -> None:
    """For a minute, after which Ray may have given a part of itself up."""
    with Scenario(tmp_path, command) as run:
        add(run)

        def stand(driver: Any) -> None:
            stopped(driver if who == "driver" else run.processes.of(who)[0], MINUTE)

        run.midway(MIDWAY, stand)
        assert run.command() == COMPLETE, run.processes.errors()
        same(whole, run)


def test_the_clock_jumps(
    command: list[str], whole: Path, tmp_path: Path, add: Callable[[Scenario], None]
) -> None:
    """By an hour, forward and back, in all processes of the run."""
    with Scenario(tmp_path, command, {"PYTHONPATH": str(CLOCK)}) as run:
        add(run)
        assert run.command() == COMPLETE, run.processes.errors()
        same(whole, run)
        assert run.server.num_asked() == CALLS


def test_the_cluster_is_gone_and_another_goes_on_elsewhere(
    command: list[str], whole: Path, tmp_path: Path, add: Callable[[Scenario], None]
) -> None:
    """Every process of the first is killed; the warehouse is moved before the second comes."""
    with Scenario(tmp_path, command, environment(TOKEN)) as run:
        add(run)
        with _head() as address:
            driver = run.begin("cluster=ray", f"cluster.address={address}")
            while run.server.num_asked() < MIDWAY and driver.poll() is None:
                time.sleep(0.02)
            assert driver.poll() is None, run.processes.errors()
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
        run.move()
        with _head() as address:
            again = run.command("cluster=ray", f"cluster.address={address}")
            assert again == COMPLETE, run.processes.errors()
        same(whole, run)


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
def test_storage(
    fault: str, command: list[str], whole: Path, tmp_path: Path, add: Callable[[Scenario], None]
) -> None:
    """That fails from some operation on, in every process; afterwards it is sound again."""
    over = tmp_path / "over"
    own = [{**one, "path": "*/warehouse/*", "until": str(over)} for one in FAULTS[fault]]
    shim = {"PYTHONPATH": str(STORAGE), "GISTMILL_FAULTS": json.dumps(own)}
    with Scenario(tmp_path, command, shim) as run:
        add(run)
        code = run.command()
        assert code == (COMPLETE if fault in SURVIVED else INCOMPLETE), run.processes.errors()
        assert run.one_line()
        over.touch()
        assert run.command() == COMPLETE, run.processes.errors()
        same(whole, run)
