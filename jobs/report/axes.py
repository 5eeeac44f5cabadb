"""The axes of a picture: where a value is drawn, and round numbers to write there."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Axis:
    """`at`: the pixel at which a value is drawn. `ticks`: pixels with their numbers. `gap`: the
    pixel at which the axis is broken, as what is before it is of no scale."""

    at: Callable[[float], float]
    ticks: Sequence[tuple[float, str]]
    gap: float | None = None


def linear(values: Sequence[float], start: float, end: float) -> Axis:
    """An axis between two pixels for values of which none need be there (then 0 to 100)."""
    low, high = min(values, default=0.0), max(values, default=100.0)
    more = (high - low or 2) * 0.08
    low, high = max(low - more, min(low, 0.0)), high + more

    def at(value: float) -> float:
        return round(start + (value - low) / (high - low) * (end - start), 1)

    return Axis(at, [(at(tick), f"{tick:,g}") for tick in _round_numbers(low, high)])


def logarithmic(values: Sequence[float], start: float, end: float) -> Axis:
    """An axis between two pixels by the logarithm of the values. Those below 1, such as none at
    all, are at its start, before a gap."""
    some = [value for value in values if value >= 1] or [100.0, 10_000.0]
    gap = start + 44 if len(some) < len(values) else None
    low, high = min(some) / 1.25, max(some) * 1.25
    first = start if gap is None else gap

    def at(value: float) -> float:
        if value < 1:
            return start + 22
        return round(first + math.log(value / low) / math.log(high / low) * (end - first), 1)

    ticks = [(at(tick), f"{tick:,g}") for tick in _round_powers(low, high)]
    return Axis(at, [*([] if gap is None else [(at(0), "0")]), *ticks], gap)


def _round_numbers(low: float, high: float) -> list[float]:
    """Some five multiples of 1, 2 or 5 times a power of ten."""
    rough = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(times * power for times in (1, 2, 5, 10) if times * power >= rough)
    return [n * step for n in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _round_powers(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten; round numbers where these are too few, powers alone where
    they are too many."""
    if high < 8 * low:
        return _round_numbers(low, high)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)))
    digits = (1, 2, 5) if high < 10_000 * low else (1,)
    ticks = [digit * 10.0**power for power in powers for digit in digits]
    return [tick for tick in ticks if low <= tick <= high]
