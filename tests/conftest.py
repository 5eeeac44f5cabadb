"""Runs that several test files look at, made once; and the longest files first."""

import copy
import gc
import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

from pipeline.core.registry import REGISTRIES
from pipeline.core.rows import RECORDS
from pipeline.work.stage import MEASURES
from stages.builtin import load_builtin
from tests.support.clusters.ray_head import RayHead
from tests.support.command import WHOLE_QMSUM, gistmill
from tests.support.docs.browser import Browser, chromium
from tests.support.runs.hand_run import HandRun
from tests.support.sampled import keep_day, left_out_today

# A loaded machine takes longer than Hypothesis allows an example by default.
settings.register_profile("without deadline", deadline=None)
settings.load_profile("without deadline")
# Several tests run side by side: each Ray of theirs has one CPU, which most runs put one worker on.
os.environ.setdefault("RAY_OVERRIDE_RESOURCES", '{"CPU": 1}')
# A full collection, as of each compaction, would look through all tests: they are frozen.
gc.disable()

# Files that take minutes: side by side, none of them should be begun last.
LONGEST = (
    "test_pages", "test_dense_model", "test_vllm_engine",
    "test_nodes", "test_faults", "test_graceful_stop", "test_submit", "test_flaky_s3", "test_plan",
    "test_notebooks",
    "test_qmsum_run", "test_kills", "test_compaction",
)  # fmt: skip


def pytest_configure() -> None:
    keep_day()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In CI without the sampled tests of other days. Longest first; the order within a file
    stays."""
    if left_out := left_out_today(items):
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in {*left_out}]
    order = {name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get(item.path.stem, len(order)))


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Fail a test of the whole corpora in one line where they are missing."""
    if item.get_closest_marker("whole") and not WHOLE_QMSUM.is_file():
        why = f"{WHOLE_QMSUM} is missing: set GISTMILL_DATA to the folder of the whole corpora"
        pytest.fail(f"{why} (CONTRIBUTING.md says what it holds)", pytrace=False)


@pytest.fixture
def registries(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test loads is forgotten after it."""
    load_builtin()
    monkeypatch.setattr("pipeline.core.registry._FOLDERS", {})
    known: list[dict[str, Any]] = [RECORDS, MEASURES]
    known += [own for registry in REGISTRIES.values() for own in (registry, registry.about)]
    before = [copy.copy(one) for one in known]
    yield
    for one, names in zip(known, before, strict=True):
        one.clear()
        one.update(names)


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
