"""A time limit, and a process that is suspended."""

import asyncio
import gc
import time

import pytest

from pipeline.core.engine import wait_excluding_suspend


async def _reply(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "reply"


def test_what_comes_in_time_is_returned() -> None:
    assert asyncio.run(wait_excluding_suspend(_reply(0.0), 60.0)) == "reply"
    assert asyncio.run(wait_excluding_suspend(_reply(0.01), None)) == "reply"


def test_its_own_error_is_raised() -> None:
    async def refused() -> str:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        asyncio.run(wait_excluding_suspend(refused(), 60.0))


@pytest.mark.parametrize("is_ended", [False, True])
def test_what_is_late_or_not_wanted_any_more_is_cancelled(is_ended: bool) -> None:
    ends: list[str] = []

    async def endless() -> None:
        try:
            await asyncio.sleep(600.0)
        except asyncio.CancelledError:
            ends.append("cancelled")
            raise

    async def ended() -> None:
        waiting = asyncio.ensure_future(wait_excluding_suspend(endless(), 600.0))
        await asyncio.sleep(0.01)
        waiting.cancel()
        await waiting

    if is_ended:
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(ended())
    else:
        with pytest.raises(TimeoutError):
            asyncio.run(wait_excluding_suspend(endless(), 0.01))
    assert ends == ["cancelled"]


def test_a_reply_that_came_while_the_process_was_suspended_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A blocked event loop, as a suspended process has one; the reply is there when it goes on."""
    monkeypatch.setattr("pipeline.core.engine._SUSPENDED", 0.2)

    async def suspended() -> str:
        waiting = asyncio.ensure_future(wait_excluding_suspend(_reply(0.3), 0.1))
        await asyncio.sleep(0.02)
        time.sleep(0.6)  # both the reply and the end of the time are due by then
        return await waiting

    assert asyncio.run(suspended()) == "reply"


def test_the_time_begins_anew_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.core.engine._SUSPENDED", 0.2)

    async def suspended() -> None:
        waiting = asyncio.ensure_future(wait_excluding_suspend(_reply(600.0), 0.1))
        await asyncio.sleep(0.02)
        time.sleep(0.6)
        await waiting

    with pytest.raises(TimeoutError):
        asyncio.run(suspended())


def test_an_error_of_what_is_cancelled_is_reported_nowhere(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fails_when_cancelled() -> None:
        try:
            await asyncio.sleep(600.0)
        finally:
            raise ValueError("no")

    with pytest.raises(TimeoutError):
        asyncio.run(wait_excluding_suspend(fails_when_cancelled(), 0.01))
    gc.collect()
    assert caplog.records == []
