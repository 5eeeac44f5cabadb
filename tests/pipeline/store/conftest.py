from pathlib import Path

import pytest

from tests.support.runs.warehouse import Warehouse


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    """An empty warehouse, whose name SQL and globs would misread."""
    return Warehouse(tmp_path / "My [Ware] house's * 100%")
