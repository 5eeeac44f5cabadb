"""When a night will be over, foretold a tenth into it, on documents of very different lengths.

The night is played by a separate little simulation: workers that take the longest document next
and get on with it token by token.
"""

import heapq
import random
from collections.abc import Iterator

import pytest

from jobs.eta import Eta

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
@pytest.mark.parametrize(("is_cost", "off"), [(True, 0.4), (False, 0.15)])
def test_foretold_a_tenth_into_the_night(seed: int, is_cost: bool, off: float) -> None:
    """Documents cost up to 40% more or less than planned. Without a plan, only what the first ones
    took says what a word costs: by them, up to 15%."""
    draw = random.Random(seed)
    lengths = [60_000 * draw.lognormvariate(0, 1.0) for _ in range(400)]
    factor = {number: draw.uniform(1 - off, 1 + off) for number in range(400)}
    played = list(night(lengths, factor))
    ends, all_of_it = played[-1][:2]
    scale = 1.0 if is_cost else 0.01  # weights in another unit than what is spent
    eta = Eta([(str(n), length * scale) for n, length in enumerate(lengths)], is_cost)
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
    eta = Eta([("a", 10.0)], is_cost=False)
    assert (eta.seconds, eta.share) == (None, 0.0)
    eta.spent(0.0, 5.0)  # engines start
    eta.spent(4.0, 10.0)
    assert eta.seconds is None
    planned = Eta([("a", 10.0)], is_cost=True)
    planned.spent(0.0, 5.0)
    planned.spent(2.0, 100.0)
    planned.spent(4.0, 110.0)
    assert planned.seconds == 30.0  # 6 are left, at 0.2 a second
