"""Slots: so many at once, the lowest rank next, none lost when a waiter gives up."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from pipeline.asking.reader import Capacity, Slots
from pipeline.core.errors import StorageError

T = TypeVar("T")


def run(talk: Callable[[], Awaitable[T]]) -> T:
    async def wait() -> T:
        return await asyncio.wait_for(talk(), 10)

    return asyncio.run(wait())


def test_the_lowest_rank_goes_first_once_the_slots_are_taken() -> None:
    slots, entered = Slots(1), list[int]()

    async def request(rank: int) -> None:
        async with slots.one(rank):
            entered.append(rank)
            await asyncio.sleep(0)

    async def talk() -> None:
        await asyncio.gather(*map(request, [5, 3, 9, 1, 3]))

    run(talk)
    assert entered == [5, 1, 3, 3, 9]


def test_a_reply_that_storage_refuses_is_the_last() -> None:
    """Requests that wait, or come later, get no slot; those in flight end."""

    async def talk() -> list[BaseException | None]:
        slots, refusal = Slots(2), StorageError("full")

        async def request(number: int) -> None:
            async with slots.one(number):
                await asyncio.sleep(0.001 if number == 0 else 0.002)
                if number == 0:
                    raise refusal

        asked = [asyncio.create_task(request(number)) for number in range(5)]
        found = [*await asyncio.gather(*asked, return_exceptions=True)]
        late = await asyncio.gather(request(9), return_exceptions=True)
        return [*found, *late]

    assert [str(one) for one in run(talk)] == ["full", "None", *["full"] * 4]


@pytest.mark.parametrize("handed_over", [False, True])
def test_who_gives_up_waiting_costs_no_slot(handed_over: bool) -> None:
    """Cancelled while waiting, or just as its turn comes: the next one gets in either way."""

    async def talk() -> str:
        slots = Slots(1)
        first, second = slots.one(0), slots.one(1)
        await first.__aenter__()
        waiting = asyncio.create_task(second.__aenter__())
        await asyncio.sleep(0)
        if handed_over:
            await first.__aexit__(None, None, None)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        if not handed_over:
            await first.__aexit__(None, None, None)
        async with slots.one(2):
            return "in"

    assert run(talk) == "in"


@pytest.mark.parametrize(
    ("weights", "most"),
    [
        ([4, 4, 4, 9, 1, 1, 10, 2], 10),  # first come, first in, however light who waits behind
        ([3, 25, 3], 25),  # a heavier one is let in alone
    ],
)
def test_weights_in_flight_are_limited(weights: list[int], most: int) -> None:
    inside, found, entered = 0, 0, list[int]()

    async def hold(room: Capacity, number: int, weight: int) -> None:
        nonlocal inside, found
        async with room.held(weight):
            entered.append(number)
            inside += weight
            found = max(found, inside)
            await asyncio.sleep(0.001)
            inside -= weight

    async def talk() -> None:
        room = Capacity(10)
        async with room.held(10):
            given_up = asyncio.create_task(hold(room, -1, 5))
            await asyncio.sleep(0)
            given_up.cancel()
            await asyncio.gather(given_up, return_exceptions=True)
        await asyncio.gather(*(hold(room, n, weight) for n, weight in enumerate(weights)))

    run(talk)
    assert (found, entered) == (most, [*range(len(weights))])
