"""A run on storage that refuses: what only says how far it is is left out; a commit that stays
refused ends it, and the same command goes on."""

import asyncio
import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from pipeline.core.calls import UsageCounters
from pipeline.core.errors import CommandError, EndedError, EngineError
from pipeline.worker.progress import Heartbeat
from pipeline.worker.worker import ended_by

pytestmark = pytest.mark.sampled


@pytest.mark.slow
def test_whether_to_stop_is_asked_again() -> None:
    """Else neither a deadline nor a stalled run would be seen again."""
    looks: list[float] = []

    def should_stop() -> CommandError | None:
        looks.append(time.monotonic())
        if len(looks) == 1:
            raise OSError("no space left on device")
        return EndedError("the deadline")

    with pytest.raises(EndedError, match="the deadline"), ended_by(should_stop):
        threading.Event().wait(30)
    assert len(looks) == 2


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_watch_that_fails_ends_the_run() -> None:
    """Nobody would see the deadline. What it failed by is on standard error."""

    def should_stop() -> None:
        raise KeyError("no error of storage")

    failed = pytest.raises(EngineError, match="the watch over the run failed")
    with failed, ended_by(should_stop):
        threading.Event().wait(30)


def test_a_heart_goes_on_beating(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.worker.progress.SECONDS_BETWEEN_BEATS", 0.01)
    folder = tmp_path / "alive"
    folder.write_text("in the way of the folder")

    async def beat() -> dict[str, Any]:
        with Heartbeat(folder, "launch", UsageCounters()).document("d"):
            await asyncio.sleep(0.1)
            folder.unlink()
            while not (files := list(folder.glob("*.json"))):
                await asyncio.sleep(0.01)
            return dict(json.loads(files[0].read_text()))

    assert asyncio.run(asyncio.wait_for(beat(), 60))["launch"] == "launch"
