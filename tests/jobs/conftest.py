"""A run that tests of many verbs read."""

import pytest

from tests.support.runs.finished_run import FinishedRun


@pytest.fixture(scope="session")
def night(tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    """Documents d1 and d2 of three pages of 40 words; the engine's gists are `as it was`. Its
    warehouse is copied before it is changed."""
    return FinishedRun(tmp_path_factory.mktemp("night"))
