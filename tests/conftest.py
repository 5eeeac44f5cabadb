"""Runs that several test files look at, made once."""

import pytest

from tests.command import gistmill
from tests.hand_run import HandRun


@pytest.fixture(scope="session")
def hand(tmp_path_factory: pytest.TempPathFactory) -> HandRun:
    """The run of hand_run.py, finished. It has more problems than are allowed."""
    run = HandRun(tmp_path_factory.mktemp("hand"))
    run.write()
    done = gistmill(*run.words)
    run.code, run.out, run.err = done.returncode, done.stdout, done.stderr
    return run
