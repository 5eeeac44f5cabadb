"""A worker's heartbeat ends when it is told to, whatever happens at the same moment."""

import asyncio
from pathlib import Path

import pytest

from pipeline.core.calls import UsageCounters
from pipeline.worker.progress import Heartbeat


@pytest.mark.parametrize("rounds", range(6))
def test_it_ends_when_it_is_cancelled_as_it_is_woken(tmp_path: Path, rounds: int) -> None:
    """So many rounds of the event loop lie between an engine's start, which has the next heartbeat
    written at once, and the end."""

    async def end() -> None:
        heartbeat = Heartbeat(tmp_path, "launch", UsageCounters())
        with heartbeat.starting():
            while not [*tmp_path.glob("*.json")]:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.05)
        for _ in range(rounds):
            await asyncio.sleep(0)
        (task,) = asyncio.all_tasks() - {asyncio.current_task()}
        task.cancel()  # as asyncio.run does
        _, at_work = await asyncio.wait({task}, timeout=3)
        task.cancel()
        assert not at_work

    asyncio.run(end())
