"""Leases: one holder at a time, taken over from the dead, by whoever is first."""

import json
import os
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pipeline.files import storage
from pipeline.files.lease import holder, lease
from tests.jobs.run.test_graceful_stop import until

HOST = socket.gethostname()
ENDED = 2**22 + 1  # Linux gives no process here such a number; one elsewhere may be at work
OTHER = f"other-{HOST}"


def written(folder: Path, file: str = "compact.1.lease", **fields: Any) -> None:
    """A lease as another process would have left it, fresh for an hour."""
    of_other = {"token": "x", "host": OTHER, "pid": ENDED, "expires_at": time.time() + 3600}
    (folder / file).write_text(json.dumps({**of_other, **fields}))


def test_one_holder_at_a_time_and_free_afterwards(tmp_path: Path) -> None:
    folder = storage.as_path(tmp_path)
    with lease(folder, "compact") as mine:
        assert mine is not None and mine.is_held()
        assert holder(folder, "compact") == f"{HOST}-{os.getpid()}"
        with lease(folder, "compact") as second, lease(folder, "compactall") as of_other_name:
            assert second is None and of_other_name is not None
        assert mine.is_held()
    assert holder(folder, "compact") is None
    with lease(folder, "compact") as again:
        assert again is not None


@pytest.mark.parametrize("fields", [{"expires_at": 0.0}, {"expires_at": "soon"}, {"host": HOST}])
def test_what_nobody_holds_is_taken_over(tmp_path: Path, fields: dict[str, Any]) -> None:
    """It has expired, is none, or is of a process of this machine that has ended."""
    written(tmp_path, **fields)
    with lease(storage.as_path(tmp_path), "compact") as mine:
        assert mine is not None
        assert holder(storage.as_path(tmp_path), "compact") == f"{HOST}-{os.getpid()}"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("is_late", [False, True])
def test_a_living_process_elsewhere_keeps_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_late: bool
) -> None:
    """If late: while this process paused, one took 2 and ended, and the next took 3 and deleted
    2."""

    def late(path: Any, content: bytes) -> bool:
        written(tmp_path, "compact.3.lease")
        return storage.commit(path, content)

    written(tmp_path, expires_at=time.time() + (-1 if is_late else 3600))
    if is_late:
        monkeypatch.setattr("pipeline.files.lease.commit", late)
    with lease(storage.as_path(tmp_path), "compact") as mine:
        assert mine is None
    assert holder(storage.as_path(tmp_path), "compact") == f"{OTHER}-{ENDED}"


def test_who_was_taken_over_learns_of_it_and_leaves_the_new_holder_alone(tmp_path: Path) -> None:
    folder = storage.as_path(tmp_path)
    with lease(folder, "compact") as mine:
        assert mine is not None
        written(tmp_path, "compact.2.lease")
        assert not mine.is_held()
    assert holder(folder, "compact") == f"{OTHER}-{ENDED}"


def test_the_holder_keeps_it_fresh_and_no_error_of_the_filesystem_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = []

    def fails(path: object, content: bytes = b"") -> None:
        failures.append(path)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pipeline.files.lease.SECONDS", 0.2)
    with lease(storage.as_path(tmp_path), "compact") as mine:
        first = (tmp_path / "compact.1.lease").read_text()
        until(lambda: (tmp_path / "compact.1.lease").read_text() != first)
        for name in ("write", "delete"):
            monkeypatch.setattr(f"pipeline.files.lease.{name}", fails)
        until(lambda: len(failures) >= 2)
        assert mine is not None and mine.is_held()
    assert len(failures) >= 3  # the last one at the release


def test_of_many_who_want_a_dead_holders_lease_one_gets_it(tmp_path: Path) -> None:
    written(tmp_path, expires_at=0.0)
    all_tried = threading.Barrier(8)

    def take(_: int) -> bool:
        with lease(storage.as_path(tmp_path), "compact") as mine:
            all_tried.wait()
            return mine is not None

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(take, range(8))) == 1
