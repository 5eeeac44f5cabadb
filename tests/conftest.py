"""Runs that several test files look at, made once; and the longest files first."""

import os
from collections.abc import Iterator

import pytest

from tests.browser import Browser, chromium
from tests.command import gistmill
from tests.hand_run import HandRun
from tests.ray_head import RayHead

# Several tests run side by side: each Ray of theirs has one CPU, which most runs put one worker on.
os.environ.setdefault("RAY_OVERRIDE_RESOURCES", '{"CPU": 1}')


# Files that take minutes: side by side, none of them should be begun last.
LONGEST = (
    "test_readme", "test_resume", "test_dense_model", "test_vllm_engine", "test_nodes",
    "test_faults", "test_ending", "test_submit", "test_s3", "test_notebooks", "test_plan",
    "test_qmsum_run",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Longest first; the order within a file stays."""
    order = {name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get(item.path.stem, len(order)))


@pytest.fixture(scope="session")
def hand(tmp_path_factory: pytest.TempPathFactory) -> HandRun:
    """The run of hand_run.py, finished. It has more problems than are allowed."""
    run = HandRun(tmp_path_factory.mktemp("hand"))
    run.write()
    done = gistmill(*run.words)
    run.code, run.out, run.err = done.returncode, done.stdout, done.stderr
    return run


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A Chromium for a file's tests."""
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def head() -> Iterator[RayHead]:
    """A Ray that stays, with its dashboard, for a file's tests."""
    made = RayHead()
    try:
        made.start()
        yield made
    finally:
        made.end()
