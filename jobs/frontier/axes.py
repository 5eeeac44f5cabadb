"""The axes of a picture: where a value is drawn, and round numbers to write there."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Axis:
    """`at`: the pixel at which a value is drawn. `ticks`: pixels with their numbers. `gap`: the
    pixel at which the axis is broken, as what is before it is of no scale."""

    at: Callable[[float], float]
    ticks: Sequence[tuple[float, str]]
    gap: float | None = None


def linear(values: Sequence[float], start: float, end: float) -> Axis:
    """An axis between two pixels; without values from 0 to 100."""
    low, high = min(values, default=0.0), max(values, default=100.0)
    more = (high - low) * 0.08 or 5.0
    low, high = max(low - more, min(low, 0.0)), high + more

    def at(value: float) -> float:
        return round(start + (value - low) / (high - low) * (end - start), 1)

    return Axis(at, _written(_round_numbers(low, high), at))


def logarithmic(values: Sequence[float], start: float, end: float) -> Axis:
    """An axis between two pixels by the logarithm of the values. Those below 1, such as no tokens
    at all, are at its start, before a gap."""
    some = [value for value in values if value >= 1] or [100.0, 10_000.0]
    gap = start + 44 if min(values, default=1.0) < 1 else None
    low, high, first = min(some) / 1.25, max(some) * 1.25, gap or start

    def at(value: float) -> float:
        if value < 1:
            return start + 22
        return round(first + math.log(value / low) / math.log(high / low) * (end - first), 1)

    digits = (1, 2, 5) if high < 10_000 * low else (1,)
    ticks = [d * 10.0**power for power in range(12) for d in digits if low <= d * 10**power <= high]
    ticks = ticks if len(ticks) > 2 else _round_numbers(low, high)
    return Axis(at, _written([0.0, *ticks] if gap else ticks, at), gap)


def _written(numbers: Iterable[float], at: Callable[[float], float]) -> list[tuple[float, str]]:
    return [(at(number), f"{number:,g}") for number in numbers]


def _round_numbers(low: float, high: float) -> list[float]:
    """Some five multiples of 1, 2 or 5 times a power of ten."""
    rough = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(times * power for times in (1, 2, 5, 10) if times * power >= rough)
    return [n * step for n in range(math.ceil(low / step), math.floor(high / step) + 1)]
