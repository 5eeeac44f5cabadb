"""Files in the user's cache folder: how long they stay."""

import os
import time
from pathlib import Path

import pytest

from pipeline.files.user_cache import keep, kept

DAY = 24 * 3600.0


def test_what_was_not_used_for_thirty_days_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder, other = tmp_path / "gistmill" / "texts", tmp_path / "gistmill" / "others" / "old"
    ages = {"used": 40, "recent": 29, "old": 31}
    for file in (*(folder / name for name in ages), other):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"text")
        then = time.time() - ages[file.name] * DAY
        os.utime(file, (then, then))
    (folder / "sub").mkdir()
    assert kept("texts", "used") == b"text"  # used today
    keep("texts", "new", b"text")
    assert {file.name for file in folder.iterdir()} == {"used", "recent", "new", "sub"}
    assert other.exists(), "of a kind of which nothing was kept now"
