"""Files that only say how far a run is: what storage refuses now is written again later."""

import asyncio
import json
import threading
import time
from pathlib import Path

import pytest

from pipeline.cluster.watching import Failures, watched
from pipeline.errors import EndedError
from pipeline.heartbeat import Heartbeat
from pipeline.store.runs import RunFolder
from pipeline.usage import UsageCounters


def test_a_heart_goes_on_beating(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.heartbeat.SECONDS_BETWEEN_BEATS", 0.01)
    folder = tmp_path / "alive"
    folder.write_text("in the way of the folder")

    async def beat() -> list[Path]:
        heart = Heartbeat(folder, "launch", UsageCounters())
        with heart.document("d"):
            await asyncio.sleep(0.1)
            folder.unlink()
            await asyncio.sleep(0.3)
            return list(folder.glob("*.json"))

    (file,) = asyncio.run(beat())
    assert json.loads(file.read_text())["launch"] == "launch"


def test_the_watch_looks_again() -> None:
    """Without it neither a deadline nor a stalled run would be seen again."""
    looks: list[float] = []

    def watch() -> None:
        looks.append(time.monotonic())
        if len(looks) == 1:
            raise OSError("no space left on device")
        raise EndedError("the deadline")

    with pytest.raises(EndedError, match="the deadline"), watched(watch, Failures(60.0)):
        threading.Event().wait(30)
    assert len(looks) == 2


def test_progress_that_cannot_be_written_is_left_out(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path, "r")
    folder.path.parent.mkdir(parents=True, exist_ok=True)
    folder.path.write_text("in the way of the folder")
    folder.write_progress("launch", {"done": 1})
    folder.path.unlink()
    folder.path.mkdir()
    folder.write_progress("launch", {"done": 2})
    (file,) = [f for f in folder.path.rglob("*") if f.is_file()]
    assert json.loads(file.read_text()) == {"launch": "launch", "done": 2}
