"""A run on storage that refuses: what only says how far it is is left out, and said; a commit that
stays refused ends it, and the same command goes on."""

import asyncio
import errno
import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from jobs.graph.manifest import run_manifest
from jobs.run.execute import RunExecutor
from jobs.run.progress import Progress, progress_line
from pipeline.cluster import Pool, execute_documents
from pipeline.core.calls import UsageCounters
from pipeline.core.errors import CommandError, EndedError, EngineError, StorageError
from pipeline.store.runs.run_folder import RunFolder
from pipeline.work.executions import work_on
from pipeline.worker.crashes import Placement
from pipeline.worker.executor import Summary
from pipeline.worker.heartbeat import Heartbeat
from pipeline.worker.inline import ended_by
from pipeline.worker.worker import AnyWorker
from tests.support.clusters.cluster_settings import LOCAL
from tests.support.command import succeed
from tests.support.runs.small_run import SmallRun

pytestmark = pytest.mark.sampled


def test_a_heart_goes_on_beating(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.worker.heartbeat.SECONDS_BETWEEN_BEATS", 0.01)
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


def test_a_worker_that_is_closed_beats_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the next one in its process (cluster=inline) the file has another name."""
    monkeypatch.setattr("pipeline.worker.heartbeat.SECONDS_BETWEEN_BEATS", 0.01)

    async def beat() -> None:
        hearts = [Heartbeat(tmp_path, "launch", UsageCounters()) for _ in range(2)]
        for heart in hearts:
            with heart.document("d"):
                await asyncio.sleep(0.1)
            heart.close()
            await asyncio.sleep(0.05)
        before = [(file, file.stat().st_mtime_ns) for file in sorted(tmp_path.iterdir())]
        await asyncio.sleep(0.1)
        assert {file.stem for file, _ in before} == {heart.name for heart in hearts}
        assert len(before) == 2
        assert [(file, file.stat().st_mtime_ns) for file, _ in before] == before

    asyncio.run(beat())


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


class OneSummary:
    """A dataset of which one document is finished."""

    def iter_batches(self, **options: Any) -> Iterator[pa.Table]:
        outcome = {"error": "", "payload": json.dumps({"document_id": "d"})}
        yield pa.table({"outcomes": [json.dumps([outcome])]})


def test_an_end_while_a_summary_is_counted_keeps_its_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pipeline.cluster.execution._dataset", lambda *given: OneSummary())
    monkeypatch.setattr("pipeline.cluster.execution.RayWatch.look", lambda of_ray: None)
    pool = Pool(
        section="engine", min_workers=1, max_workers=1, cpus=1, gpus=0, slots=1, cluster=LOCAL
    )

    def never_made(placement: Placement) -> AnyWorker:
        raise AssertionError

    def done(outcome: Summary | CommandError) -> None:
        threading.Event().wait(30)

    with pytest.raises(EndedError, match="the deadline"):
        execute_documents(
            never_made, pool, {}, work_on([]), lambda: EndedError("the deadline"), done
        )


def test_a_shard_that_is_gone_is_one_line(tmp_path: Path) -> None:
    """As where the warehouse's folder vanishes: nothing is to be deleted by hand."""
    small = SmallRun(tmp_path)
    units = small.units()
    (tmp_path / "warehouse" / "tables" / "documents").rename(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match="No such file or directory; put the folder back"):
        asyncio.run(small.worker().work("d1", units["d1"]))


def test_a_heartbeat_says_that_there_was_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.worker.heartbeat.SECONDS_BETWEEN_BEATS", 0.01)
    replace, is_full = os.replace, threading.Event()
    is_full.set()

    def refuse(*names: str) -> None:
        if is_full.is_set():
            raise OSError(errno.ENOSPC, "No space left on device")
        replace(*names)

    monkeypatch.setattr(os, "replace", refuse)

    async def beat() -> dict[str, Any]:
        heart = Heartbeat(tmp_path / "alive", "launch", UsageCounters())
        with heart.document("d"):
            while (heart._advisory.state() or {"seconds": 0.0})["seconds"] < 0.1:
                await asyncio.sleep(0.01)
            is_full.clear()
            found: dict[str, Any] = {}
            while not found.get("refused"):
                await asyncio.sleep(0.01)
                for file in (tmp_path / "alive").glob("*.json"):
                    found = json.loads(file.read_text())
            return found

    refused = asyncio.run(asyncio.wait_for(beat(), 60))["refused"]
    assert refused["seconds"] >= 0.1
    assert refused["error"] == "No space left on device"


def heartbeat(worker: str, **more: Any) -> dict[str, Any]:
    state = {"worker": worker, "launch": "launch", "is_starting": False, "documents": {}}
    return {**state, **vars(UsageCounters()), **more}


def test_status_says_what_could_not_be_written(tmp_path: Path) -> None:
    small = SmallRun(tmp_path)
    small.work()
    folder = RunFolder(small.shards.warehouse, "night")
    prepared = small.prepared()
    folder.start(run_manifest(small.resolved), {}, has_work=True)
    folder.plan(prepared.run.steps, prepared.plan.file)
    executor = RunExecutor(prepared, folder)
    executor.progress.start("reading", 1, 1.0)
    folder.write_progress("launch", executor.progress.state())
    outage = {"count": 4, "seconds": 40.0, "error": "No space left on device"}
    alive = folder.path / "alive"
    (alive / "w1.json").write_text(json.dumps(heartbeat("host-1", refused=outage)))
    (alive / "w2.json").write_text(json.dumps(heartbeat("host-2", refused=None)))
    (alive / "w3.json").write_text(json.dumps(heartbeat("host-3")))
    (alive / "torn.json").write_text('{"worker": "ho')
    os.utime(str(alive / "w2.json"), (time.time() - 600, time.time() - 600))
    lines = succeed("status", f"warehouse={small.shards.warehouse}").splitlines()
    assert (
        "worker host-1: its heartbeat could not be written for 40 s (No space left on device)"
        in lines
    )
    assert any(
        line.startswith("worker host-2: no heartbeat for 6") and "it died, hangs" in line
        for line in lines
    )
    assert not any(line.startswith("worker host-3: ") and "heartbeat" in line for line in lines)


def test_the_progress_line_says_it_too() -> None:
    outage = {"count": 2, "seconds": 12.0, "error": "Read-only file system"}
    progress = Progress(1, refused=lambda: outage)
    line = progress_line(progress.state())
    assert "progress could not be written for 12 s (Read-only file system)" in line
