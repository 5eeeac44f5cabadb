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


async def _enters(slots: Slots, ranks: list[int]) -> list[int]:
    """In which order requests of these ranks, arriving one after the other, are let in."""
    entered: list[int] = []

    async def request(rank: int) -> None:
        async with slots.one(rank):
            entered.append(rank)
            await asyncio.sleep(0)

    await asyncio.gather(*(request(rank) for rank in ranks))
    return entered


def test_the_lowest_rank_goes_first_once_the_slots_are_taken() -> None:
    assert run(lambda: _enters(Slots(1), [5, 3, 9, 1, 3])) == [5, 1, 3, 3, 9]


@pytest.mark.parametrize("size", [1, 2, 5])
def test_no_more_than_the_slots_there_are(size: int) -> None:
    async def talk() -> int:
        slots, inside, most = Slots(size), 0, 0

        async def request(rank: int) -> None:
            nonlocal inside, most
            async with slots.one(rank):
                inside += 1
                most = max(most, inside)
                await asyncio.sleep(0.001)
                inside -= 1

        await asyncio.gather(*(request(n % 3) for n in range(20)))
        return most

    assert run(talk) == size


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
        first = slots.one(0)
        await first.__aenter__()
        waiting = asyncio.create_task(_enters(slots, [1]))
        await asyncio.sleep(0)
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


async def _most_in(size: int, weights: list[int]) -> tuple[int, list[int]]:
    """The most weight inside at once, and who came in which order."""
    room, inside, most, entered = Capacity(size), 0, 0, list[int]()

    async def thing(number: int, weight: int) -> None:
        nonlocal inside, most
        async with room.held(weight):
            entered.append(number)
            inside += weight
            most = max(most, inside)
            await asyncio.sleep(0.001)
            inside -= weight

    await asyncio.gather(*(thing(n, weight) for n, weight in enumerate(weights)))
    return most, entered


def test_a_room_never_holds_more_than_its_size() -> None:
    most, entered = run(lambda: _most_in(10, [4, 4, 4, 9, 1, 1, 10, 2]))
    assert most == 10
    assert entered == list(range(8)), "first come, first in, however light who waits behind"


def test_what_is_heavier_than_the_room_is_let_in_alone() -> None:
    most, entered = run(lambda: _most_in(10, [3, 25, 3]))
    assert (most, entered) == (25, [0, 1, 2])


def test_who_gives_up_waiting_for_room_takes_none() -> None:
    async def talk() -> bool:
        room = Capacity(10)
        async with room.held(10):
            waiting = asyncio.create_task(_hold(room, 5))
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        async with room.held(10):
            return True

    assert run(talk)


async def _hold(room: Capacity, weight: int) -> None:
    async with room.held(weight):
        pass
