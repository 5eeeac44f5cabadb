from pathlib import Path

import pytest

from tests.support.runs.finished_run import FinishedRun
from tests.support.runs.warehouse import Warehouse


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    """An empty warehouse, whose name SQL and globs would misread."""
    return Warehouse(tmp_path / "My [Ware] house's * 100%")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    """A finished run, whose warehouse is copied before it is changed."""
    return FinishedRun(tmp_path_factory.mktemp("made"))
