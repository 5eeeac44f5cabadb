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


def night(lengths: list[float], factor: dict[int, float]) -> Iterator[tuple[float, float, int]]:
    """(time, tokens spent by all workers, document) as each document is through."""
    free = [0.0] * WORKERS
    spans = []
    for number, length in sorted(enumerate(lengths), key=lambda pair: -pair[1]):
        start = heapq.heappop(free)
        end = start + length * factor[number] / RATE
        heapq.heappush(free, end)
        spans.append((start, end, number))
    for _, now, number in sorted(spans, key=lambda span: span[1]):
        spent = sum(RATE * (min(end, now) - start) for start, end, _ in spans if start < now)
        yield now, spent, number


@pytest.mark.parametrize("seed", range(6))
def test_foretold_a_tenth_into_the_night(seed: int) -> None:
    """Documents cost up to 15% more or less than their weights say."""
    draw = random.Random(seed)
    lengths = [60_000 * draw.lognormvariate(0, 1.0) for _ in range(400)]
    factor = {number: draw.uniform(0.85, 1.15) for number in range(400)}
    played = list(night(lengths, factor))
    ends, all_of_it = played[-1][:2]
    eta = Eta([(str(n), 0.01 * length) for n, length in enumerate(lengths)])
    checked = 0
    eta.spent(WORKERS * RATE, 1.0)  # a first heartbeat
    for now, spent, number in played:
        eta.finished(str(number), lengths[number] * factor[number])
        eta.spent(spent, now)
        if 0.1 < spent / all_of_it < 0.9:
            assert eta.seconds is not None
            assert abs(now + eta.seconds - ends) < 0.25 * (ends - now) + 0.02 * ends
            checked += 1
    assert checked > 100
    assert eta.share == pytest.approx(1.0) and eta.seconds == pytest.approx(0.0, abs=1e-6)


def test_counting_documents_would_be_far_off() -> None:
    """Or the night above would show nothing."""
    draw = random.Random(0)
    lengths = [60_000 * draw.lognormvariate(0, 1.0) for _ in range(400)]
    played = list(night(lengths, dict.fromkeys(range(400), 1.0)))
    ends = played[-1][0]
    now = played[39][0]  # a tenth of the documents
    assert now * 400 / 40 > 1.5 * ends


def test_nothing_is_foretold_before_anything_is_known() -> None:
    eta = Eta([("a", 10.0), ("b", 20.0)])
    assert (eta.seconds, eta.share) == (None, 0.0)
    eta.spent(0.0, 5.0)  # engines start
    eta.spent(4.0, 10.0)
    assert eta.seconds is None
    eta.finished("a", 3.0)
    eta.spent(6.0, 20.0)
    assert eta.seconds == pytest.approx(15.0)  # of 9 in all 3 are left, at 0.2 a second


def test_replayed_calls_do_not_make_the_rest_look_cheap() -> None:
    """As above, but two of the three that "a" takes were replayed after a crash."""
    eta = Eta([("a", 10.0), ("b", 20.0)])
    eta.spent(1.0, 10.0)
    eta.finished("a", 1.0, spared=2.0)
    eta.spent(4.0, 25.0)
    assert eta.seconds == pytest.approx(15.0)  # 1 + 6 in all, 3 are left, at 0.2 a second
    assert eta.share == pytest.approx(4 / 7)


def inside(document_id: str, share: float, asked: float | None = None) -> dict[str, Any]:
    asked = share if asked is None else asked
    return {"document_id": document_id, "share": share, "asked_share": asked}


def test_a_single_document_is_foretold_from_inside_it() -> None:
    eta = Eta([("book", 1000.0)])
    eta.in_flight([inside("book", 0.0)])
    eta.spent(0.0, 0.0)
    assert eta.seconds is None
    eta.in_flight([inside("book", 0.1)])
    eta.spent(50.0, 10.0)
    eta.in_flight([inside("book", 0.2)])
    eta.spent(100.0, 20.0)
    # A fifth cost 100, so four fifths will cost 400, at 50 in 10 seconds.
    assert eta.share == pytest.approx(0.2)
    assert eta.seconds == pytest.approx(80.0)


def test_what_was_replayed_is_neither_cheap_nor_counted_twice() -> None:
    """Of a fifth that is done half was replayed: a tenth cost 50, so the rest will cost 400."""
    eta = Eta([("book", 1000.0)])
    eta.spent(10.0, 2.0)
    eta.in_flight([inside("book", 0.2, asked=0.1)])
    eta.spent(50.0, 10.0)
    assert eta.total == pytest.approx(450.0)
    assert eta.seconds == pytest.approx(400 / 5)


def test_finished_documents_count_once_more_of_them_is_done() -> None:
    eta = Eta([("a", 10.0), ("b", 20.0), ("c", 30.0)])
    eta.spent(1.0, 0.0)
    assert eta.in_flight([inside("b", 0.5), inside("a", 0.25)]) != []
    eta.spent(25.0, 10.0)
    assert eta.total == pytest.approx(25 + 47.5 * 2), "12.5 of 60 cost 25"
    eta.finished("b", 60.0)
    left = eta.in_flight([inside("b", 0.9), inside("a", 0.5)])  # b's heartbeat is late
    assert [one["document_id"] for one in left] == ["a"]
    eta.spent(70.0, 20.0)
    assert eta.total == pytest.approx(60 + 40 * 3)
