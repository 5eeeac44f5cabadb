"""`gistmill gc`; test_compaction.py tests that no row is lost."""

import json
import os
import random
import time
from pathlib import Path

import pytest

from jobs.warehouse.upkeep import retention
from pipeline.core.errors import UsageError
from pipeline.files.lease import UPKEEP, lease
from pipeline.files.storage import as_path
from tests.pipeline.store.test_compaction import commit_some, stored
from tests.support.command import refused, succeed
from tests.support.runs.warehouse import Warehouse


def test_it_compacts_and_deletes(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    commit_some(warehouse, random.Random(3), range(20))
    shards = stored(tmp_path)
    counts = json.loads(succeed("gc", f"warehouse={tmp_path}", "--json"))
    assert counts == {"compacted": len(shards), "into": 3, "deleted": 0, "bytes": 0}
    sizes = [path.stat().st_size for path in (tmp_path / "tables").rglob("*.parquet")]
    counts = json.loads(succeed("gc", f"warehouse={tmp_path}", "older_than=0", "--json"))
    assert counts == {"compacted": 0, "into": 0, "deleted": len(sizes), "bytes": sum(sizes)}
    assert stored(tmp_path) == {}
    text = succeed("gc", f"warehouse={tmp_path}")
    assert text == "compacted 0 shards into 0 files\ndeleted 0 files, 0 bytes\n"


def test_temporary_files_are_deleted_when_no_write_takes_so_long(tmp_path: Path) -> None:
    """A folder that a killed export left is none."""
    commit_some(Warehouse(tmp_path), random.Random(3), range(9))
    folder, old, new = (tmp_path / f".{name}.part" for name in ("folder", "old", "new"))
    folder.mkdir()
    for file in (old, new):
        file.write_text("half of a write")
    for file in (folder, old):
        os.utime(file, (time.time() - 4000,) * 2)
    counts = json.loads(succeed("gc", f"warehouse={tmp_path}", "older_than=0", "--json"))
    assert counts["deleted"] > 1 and folder.is_dir() and new.exists() and not old.exists()


def test_durations() -> None:
    durations = {None: 86400, "0": 0, "0s": 0, "90s": 90, "5m": 300, "24h": 86400, "2d": 172800}
    assert {text: retention(text) for text in durations} == durations
    for text in ("soon", "-1h", "1", "24 h", "9999999d"):
        with pytest.raises(UsageError, match="not a duration; write 24h, 90m or 2d"):
            retention(text)


def test_what_is_refused(tmp_path: Path) -> None:
    """A folder without a warehouse; and a second upkeep at the same time."""
    line = refused("gc", f"warehouse={tmp_path}")
    assert line == f"warehouse={tmp_path}: no warehouse there; set warehouse="
    assert list(tmp_path.iterdir()) == []
    commit_some(Warehouse(tmp_path), random.Random(3), range(3))
    with lease(as_path(tmp_path), UPKEEP):
        assert "another process" in refused("gc", f"warehouse={tmp_path}")
