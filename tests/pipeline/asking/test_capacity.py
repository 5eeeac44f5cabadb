"""Capacity: so many at once, the lowest rank next, none lost when a waiter gives up."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from pipeline.asking.ask import Capacity
from pipeline.core.errors import StorageError

T = TypeVar("T")


def run(talk: Callable[[], Awaitable[T]]) -> T:
    async def wait() -> T:
        return await asyncio.wait_for(talk(), 10)

    return asyncio.run(wait())


def test_the_lowest_rank_goes_first_once_all_is_taken() -> None:
    slots, entered = Capacity(1), list[int]()

    async def request(rank: int) -> None:
        async with slots.held(rank=rank):
            entered.append(rank)
            await asyncio.sleep(0)

    async def talk() -> None:
        await asyncio.gather(*map(request, [5, 3, 9, 1, 3]))

    run(talk)
    assert entered == [5, 1, 3, 3, 9]


def test_after_a_refusal_of_storage_none_is_admitted() -> None:
    """Requests that wait, or come later, get no slot; those in flight end."""

    async def talk() -> list[BaseException | None]:
        slots, refusal = Capacity(2), StorageError("full")

        async def request(number: int) -> None:
            async with slots.held(rank=number):
                await asyncio.sleep(0.001 if number == 0 else 0.002)
                if number == 0:
                    raise refusal

        early = await asyncio.gather(*map(request, range(5)), return_exceptions=True)
        return [*early, *await asyncio.gather(request(9), return_exceptions=True)]

    assert [str(error) for error in run(talk)] == ["full", "None", *["full"] * 4]


@pytest.mark.parametrize("is_handed_over", [False, True])
def test_who_gives_up_waiting_costs_no_slot(is_handed_over: bool) -> None:
    """Cancelled while waiting, or just as its turn comes: the next one gets in either way."""

    async def talk() -> str:
        slots = Capacity(1)
        first, second = slots.held(rank=0), slots.held(rank=1)
        await first.__aenter__()
        waiting = asyncio.create_task(second.__aenter__())
        await asyncio.sleep(0)
        if is_handed_over:
            await first.__aexit__(None, None, None)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        if not is_handed_over:
            await first.__aexit__(None, None, None)
        async with slots.held(rank=2):
            return "in"

    assert run(talk) == "in"


@pytest.mark.parametrize(
    ("weights", "most"),
    [
        ([4, 4, 4, 9, 1, 1, 10, 2], 10),  # first come, first in, however light a later one is
        ([3, 25, 3], 25),  # a heavier one is let in alone
    ],
)
def test_weights_in_flight_are_limited(weights: list[int], most: int) -> None:
    inside, heaviest, entered = 0, 0, list[int]()

    async def hold(capacity: Capacity, number: int, weight: int) -> None:
        nonlocal inside, heaviest
        async with capacity.held(weight):
            entered.append(number)
            inside += weight
            heaviest = max(heaviest, inside)
            await asyncio.sleep(0.001)
            inside -= weight

    async def talk() -> None:
        capacity = Capacity(10)
        async with capacity.held(10):
            given_up = asyncio.create_task(hold(capacity, -1, 5))
            await asyncio.sleep(0)
            given_up.cancel()
            await asyncio.gather(given_up, return_exceptions=True)
        await asyncio.gather(*(hold(capacity, n, weight) for n, weight in enumerate(weights)))

    run(talk)
    assert (heaviest, entered) == (most, [*range(len(weights))])


def test_a_heavy_one_that_gives_up_lets_a_light_one_in() -> None:
    async def talk() -> bool:
        capacity = Capacity(10)

        async def hold(weight: int) -> None:
            async with capacity.held(weight):
                pass

        async with capacity.held(5):
            heavy, light = asyncio.create_task(hold(9)), asyncio.create_task(hold(2))
            await asyncio.sleep(0)
            heavy.cancel()
            await asyncio.gather(heavy, return_exceptions=True)
            await light
            return light.done()

    assert run(talk)
