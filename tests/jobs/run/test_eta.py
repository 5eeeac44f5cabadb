"""When a night will be over, foretold a tenth into it, on documents of very different lengths.

The night is played by a separate little simulation: workers that take the longest document next
and get on with it token by token.
"""

import heapq
import random
from collections.abc import Iterator
from typing import Any

import pytest

from jobs.run.eta import Eta

WORKERS, RATE = 8, 1000.0  # tokens a second of each
Inside = list[dict[str, Any]]


def night(lengths: list[float], factor: dict[int, float]) -> Iterator[tuple[float, Inside, int]]:
    """(time, documents in flight, document) as each document is through."""
    free = [0.0] * WORKERS
    spans = []
    for number, length in sorted(enumerate(lengths), key=lambda pair: -pair[1]):
        start = heapq.heappop(free)
        end = start + length * factor[number] / RATE
        heapq.heappush(free, end)
        spans.append((start, end, number))
    for _, now, number in sorted(spans, key=lambda span: span[1]):
        yield now, [inside(str(other), (now - start) / (end - start), lengths[other])
                    for start, end, other in spans if start < now < end], number  # fmt: skip


def inside(document_id: str, share: float, words: float) -> dict[str, Any]:
    return {"document_id": document_id, "share": share, "words": words}


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("seed", range(6))
def test_foretold_a_tenth_into_the_night(seed: int) -> None:
    """Documents cost up to 15% more or less than their words say."""
    draw = random.Random(seed)
    lengths = [60_000 * draw.lognormvariate(0, 1.0) for _ in range(400)]
    factor = {number: draw.uniform(0.85, 1.15) for number in range(400)}
    played = list(night(lengths, factor))
    ends = played[-1][0]
    clock = Clock()
    eta = Eta(sum(lengths), clock)
    checked = 0
    eta.in_flight([{**one, "share": 1e-3} for one in played[0][1]])
    eta.look(1.0)  # a first heartbeat
    for now, in_flight, number in played:
        clock.now = now
        eta.finished(str(number), lengths[number])
        eta.in_flight(in_flight)
        eta.look(now)
        if 0.1 < eta.share < 0.9:
            assert eta.seconds is not None
            assert abs(now + eta.seconds - ends) < 0.25 * (ends - now) + 0.02 * ends
            checked += 1
    assert checked > 100
    assert eta.share == pytest.approx(1.0) and eta.seconds == pytest.approx(0.0, abs=1e-6)


def test_nothing_is_foretold_before_anything_is_known() -> None:
    eta = Eta(30.0)
    assert (eta.seconds, eta.share) == (None, 0.0)
    eta.look(5.0)  # engines start
    eta.in_flight([inside("a", 0.5, 10.0)])
    eta.look(10.0)
    assert eta.seconds is None, "a rate takes two looks"
    eta.finished("a", 10.0)
    eta.in_flight([])
    eta.look(20.0)
    assert eta.seconds == pytest.approx(40.0)  # 20 words are left, at 5 in 10 seconds


def test_a_single_document_is_foretold_from_inside_it() -> None:
    eta = Eta(1000.0)
    for now, share in ((0.0, 0.0), (10.0, 0.1), (20.0, 0.2)):
        eta.in_flight([inside("book", share, 1000.0)])
        eta.look(now)
    assert eta.share == pytest.approx(0.2)
    assert eta.seconds == pytest.approx(80.0)  # 800 words, at 100 in 10 seconds


def test_the_rate_is_that_of_the_later_half() -> None:
    """What is replayed after a crash takes no time; soon the rate is that of what is asked."""
    eta = Eta(1000.0)
    for now, share in ((0.0, 0.1), (1.0, 0.5), (30.0, 0.51), (60.0, 0.52), (90.0, 0.53)):
        eta.in_flight([inside("book", share, 1000.0)])
        eta.look(now)
    assert eta.seconds == pytest.approx(470 * 3)


def test_a_late_heartbeat_does_not_count_a_document_twice() -> None:
    eta = Eta(60.0)
    assert eta.in_flight([inside("b", 0.5, 20.0), inside("a", 0.25, 10.0)]) != []
    assert eta.share == pytest.approx(12.5 / 60)
    eta.finished("b", 20.0)
    left = eta.in_flight([inside("b", 0.9, 20.0), inside("a", 0.5, 10.0)])
    assert [one["document_id"] for one in left] == ["a"]
    assert eta.share == pytest.approx(25 / 60)


def test_the_chunks_of_a_document_finish_one_by_one() -> None:
    clock = Clock()
    eta = Eta(60.0, clock)
    eta.finished("a", 10.0)
    assert eta.share == pytest.approx(10 / 60)
    both = [inside("a", 0.5, 30.0), inside("a", 0.9, 10.0)]
    assert eta.in_flight(both) == both[:1], "a heartbeat of before, for all one knows"
    clock.now = 16.0
    assert eta.in_flight([inside("a", 0.5, 30.0)]) != []
    assert eta.share == pytest.approx(25 / 60)
    eta.finished("a", 30.0)
    assert eta.in_flight([inside("a", 0.5, 30.0)]) == []
    assert eta.share == pytest.approx(40 / 60)
