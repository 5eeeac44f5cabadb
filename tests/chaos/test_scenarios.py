"""Small runs under one fault each, and the same command again without it.

Poisonous units, engines that die or never start are in tests/faults/test_faults.py, nodes that come
and go in tests/faults/test_nodes.py (`make chaos` runs those files, too); disks that are full,
read-only or gone are in tests/faults/test_faulty_runs.py.
"""

import os
import shutil
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.scenario import CALLS_OF_A_DOCUMENT, Scenario, stopped, words
from tests.chaos.tables import contents, difference, keys, rows
from tests.support.clusters.ray_head import TOKEN, RayHead, environment
from tests.support.faulty_storage import environment_with

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(1200)]

Start = Callable[..., Scenario]
CLOCK = Path(__file__).with_name("clock")
DOCUMENTS = 6
MIDWAY = 60  # requests
COMPLETE, PROBLEMS, INCOMPLETE = 0, 3, 4
SECONDS_STILL = 60.0  # after which Ray may have given a part of itself up


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    patient = ("engine.deadline_seconds=20.0", "max_problem_rate=1.0")
    return words(tmp_path_factory.mktemp("corpus"), DOCUMENTS, *patient)


@pytest.fixture(scope="module")
def whole(command: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The warehouse of an undisturbed run."""
    with Scenario(tmp_path_factory.mktemp("whole"), command) as run:
        assert run.command() == COMPLETE, run.errors()
        assert len(run.server.asked) == DOCUMENTS * CALLS_OF_A_DOCUMENT
        return run.warehouse


@pytest.fixture
def start(command: list[str], tmp_path: Path) -> Iterator[Start]:
    """Begins the test's run."""
    with ExitStack() as stack:

        def started(environment: Mapping[str, str] = {}) -> Scenario:
            return stack.enter_context(Scenario(tmp_path, command, environment))

        yield started


def finish(run: Scenario, whole: Path, *more: str) -> None:
    """The same command completes the run, with the rows of the undisturbed one."""
    assert run.command(*more) == COMPLETE, run.errors()
    assert difference(rows(whole), rows(run.warehouse)) == []


MODES = [("away", "hang", "drip", "garbage", "cut"), ("empty",)]


@pytest.mark.parametrize("modes", MODES, ids="-".join)
def test_replies(modes: tuple[str, ...], whole: Path, start: Start) -> None:
    """A dozen requests are not answered as they should; later ones are."""
    run = start()
    run.server.bad = [mode for _ in range(12 // len(modes)) for mode in modes]
    quick = ("engine.deadline_seconds=3.0", "engine.retries=1")
    assert run.command(*quick) in (COMPLETE, PROBLEMS, INCOMPLETE), run.errors()
    assert "Traceback" not in run.errors()
    assert run.server.bad == []
    # A reply without a text is one that cannot be read: only `retry` asks again.
    again = run.retry if "empty" in modes else run.command
    assert again() == COMPLETE, run.errors()
    assert difference(contents(whole), contents(run.warehouse)) == []


def test_replies_that_are_not_what_was_asked_for(whole: Path, start: Start) -> None:
    """Three million characters, or what another request was replied, are a reply: the rows that
    rest on it are others, none is lost."""
    run = start()
    bad = ["huge", "of_another"] * 6
    code = run.midway(1, lambda driver: run.server.bad.extend(bad))
    assert code in (COMPLETE, PROBLEMS), run.errors()
    assert run.server.bad == []
    assert run.command() in (COMPLETE, PROBLEMS), run.errors()
    assert "Traceback" not in run.errors()
    of_no_reply = ("documents", "questions", "pages", "gists", "answers")  # whose keys none decides
    assert difference(keys(whole, *of_no_reply), keys(run.warehouse, *of_no_reply)) == []


@pytest.mark.parametrize("who", ["driver", "worker", "raylet"])
def test_a_process_stands_still(who: str, whole: Path, start: Start) -> None:
    run = start()
    run.midway(
        MIDWAY,
        lambda driver: stopped(driver if who == "driver" else run.of(who)[0], SECONDS_STILL),
    )
    if who != "worker":
        finish(run, whole)
    else:  # its request in flight may pass its deadline, and the row is made again
        assert run.command() == COMPLETE, run.errors()
        assert difference(contents(whole), contents(run.warehouse)) == []


def test_the_clock_jumps(whole: Path, start: Start) -> None:
    """By an hour, forward and back, in all processes of the run."""
    run = start({"PYTHONPATH": str(CLOCK)})
    finish(run, whole)
    assert len(run.server.asked) == DOCUMENTS * CALLS_OF_A_DOCUMENT


def test_the_cluster_is_gone_and_another_goes_on_elsewhere(
    whole: Path, start: Start, tmp_path: Path
) -> None:
    """Every process of the first is killed; the warehouse is moved before the second comes."""
    run = start(environment(TOKEN))
    with _head() as address:
        driver = run.begin("cluster=ray", f"cluster.address={address}")
        run.until(MIDWAY, driver)
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()
    shutil.move(run.warehouse, tmp_path / "elsewhere")
    run.warehouse = tmp_path / "elsewhere"
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


def failing(errno: str, times: int, is_done: bool = False, **skip: int) -> list[dict[str, Any]]:
    """So many failures of each of these operations, after so many that succeed."""
    fault = {"errno": errno, "times": times, "is_done": is_done}
    return [{"operation": operation, "skip": n, **fault} for operation, n in skip.items()]


FAULTS: dict[str, list[dict[str, Any]]] = {
    "flaky": [
        *failing("EIO", 2, link=12, fsync=25, open=60, replace=30),
        # As NFS, where a file that another machine has replaced is open.
        *failing("ESTALE", 3, read=40, stat=90, listdir=20, replace=15),
        {"operation": "fsync", "seconds": 0.1},
        {"operation": "open", "seconds": 0.05},
    ],
    # As NFS, where the answer to an operation is lost and the client sends it again.
    "answers_lost": [
        *failing("EEXIST", 4, is_done=True, link=5, mkdir=3),
        *failing("ENOENT", 4, is_done=True, replace=9, unlink=7),
    ],
}


@pytest.mark.parametrize("fault", FAULTS)
def test_storage(fault: str, whole: Path, tmp_path: Path, start: Start) -> None:
    """That fails from some operation on, in every process; the run survives it, and goes on on
    sound storage."""
    over = tmp_path / "over"
    faults = [{**each, "path": "*/warehouse/*", "until": str(over)} for each in FAULTS[fault]]
    run = start(environment_with(faults))
    assert run.command() == COMPLETE, run.errors()
    assert "Traceback" not in run.errors()
    over.touch()
    finish(run, whole)
