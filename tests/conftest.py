"""Runs that several test files look at, made once; and slow files first."""

import os
from collections.abc import Iterator

import pytest

from tests.command import own_process
from tests.hand_run import HandRun
from tests.ray_head import RayHead

# Several tests run side by side: each Ray of theirs has one CPU, which most runs put one worker on.
os.environ.setdefault("RAY_OVERRIDE_RESOURCES", '{"CPU": 1}')


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Side by side, what takes longest should not be begun last."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.fixture(scope="session")
def hand(tmp_path_factory: pytest.TempPathFactory) -> HandRun:
    """The run of hand_run.py, finished. It has more problems than are allowed."""
    run = HandRun(tmp_path_factory.mktemp("hand"))
    run.write()
    done = own_process(*run.words)
    run.code, run.out, run.err = done.returncode, done.stdout, done.stderr
    return run


@pytest.fixture(scope="module")
def head() -> Iterator[RayHead]:
    """A Ray that stays, with its dashboard, for a file's tests."""
    made = RayHead()
    try:
        made.start()
        yield made
    finally:
        made.end()
