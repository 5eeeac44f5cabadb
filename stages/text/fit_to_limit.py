"""Find the largest part that fits a limit, with few measurements, as sizes in tokens take time."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal

from stages.text.words import word_spans

Keep = Literal["first", "last"]
Size = Callable[[int], Awaitable[int]]
_PER_UNIT = 6  # more characters than a token of almost any prose has


async def fit_to_limit(
    limit: int, size: Size, numbers: Sequence[int], first_size: int, last_size: int
) -> int:
    """The largest of `numbers` whose size is within `limit`; the first where none is. Numbers and
    sizes ascend; the sizes of the first and the last are given, and the last exceeds the limit.
    Each guess is interpolated between the nearest two measurements, or bisects them after a guess
    that did not halve their distance: about five measurements where sizes grow evenly."""
    low, high = 0, len(numbers) - 1
    is_halved = True
    while first_size <= limit and high - low > 1:
        distance = high - low
        share = (limit - first_size) / max(1, last_size - first_size) if is_halved else 0.5
        guess = low + min(max(1, int(distance * share)), distance - 1)
        measured = await size(numbers[guess])
        if measured <= limit:
            low, first_size = guess, measured
        else:
            high, last_size = guess, measured
        is_halved = high - low <= distance // 2
    return numbers[low]


async def largest_number(limit: int, size: Size, most: int) -> int:
    """The largest number up to `most` whose size is within `limit`; 0 where none is. Numbers over
    twice the result are not measured."""
    high = min(1, most)
    while (measured := await size(high)) <= limit and high < most:
        high = min(2 * high, most)
    if measured <= limit:
        return high
    return await fit_to_limit(limit, size, range(high + 1), await size(0), measured)


async def stretch_over(limit: int, size: Size, num_chars: int) -> tuple[int, int]:
    """A number of characters, and its size: the first tried that exceeds the limit, or all. Avoids
    measuring a text many times as long as the limit."""
    chars = _PER_UNIT * max(1, limit)
    while (measured := await size(min(chars, num_chars))) <= limit and chars < num_chars:
        chars *= 2
    return min(chars, num_chars), measured


async def largest_part(text: str, keep: Keep, limit: int, size: Size) -> int:
    """The number of first or last characters of `text`, in whole words, that are within `limit`.
    `size`: measures the first or last so many characters."""
    num_chars, measured = await stretch_over(limit, size, len(text))
    if measured <= limit:
        return num_chars
    first = 0 if keep == "first" else len(text) - num_chars
    spans = word_spans(text[first : first + num_chars])
    if keep == "first":
        lengths = [end for _, end in spans]
    else:
        lengths = [num_chars - start for start, _ in reversed(spans)]
    # All of them may end within a word.
    lengths = [0, *(length for length in lengths if length < num_chars), num_chars]
    return await fit_to_limit(limit, size, lengths, await size(0), measured)
