"""Find the largest part of a text that fits a limit, and cut a text into parts that do, with few
measurements, as sizes in tokens take time."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal

from stages.text.words import num_words, sections, sentence_spans, word_spans

Keep = Literal["first", "last"]
Size = Callable[[int], Awaitable[int]]
Count = Callable[[str], Awaitable[int]]  # the tokens of a text by itself
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
    """The first number of characters tried whose size exceeds the limit, or `num_chars`, and its
    size. So no text is measured that is many times as long as the limit."""
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


async def segments(text: str, max_tokens: int, count: Count) -> list[tuple[int, int]]:
    """Half-open spans that tile `text`, in order, of at most `max_tokens` tokens each.

    Each takes as many whole sentences as fit, not counting surrounding white space. A longer
    sentence is cut between words, a longer word between characters; only a single character may
    exceed the limit. No segment is without words, unless the text is.
    """
    spans: list[tuple[int, int]] = []
    start = 0
    while start < len(text):
        spans.append((start, await _segment_end(text, start, max_tokens, count)))
        start = spans[-1][1]
    return spans


async def first_segment(text: str, max_tokens: int, count: Count) -> str:
    """The text, or as many of its first sentences as fit `max_tokens`."""
    _, end = (await segments(text, max_tokens, count))[0]
    return text[:end].strip()


async def _segment_end(text: str, start: int, max_tokens: int, count: Count) -> int:
    async def size(num_chars: int) -> int:
        return await count(text[start : start + num_chars].strip())

    num_chars, tokens = await stretch_over(max_tokens, size, len(text) - start)
    if tokens <= max_tokens:
        return len(text)
    for unit in ("sentences", "words", "characters"):
        stretch = text[start : start + num_chars]
        ends: Sequence[int] = range(1, len(stretch) + 1)
        if unit == "sentences":
            ends = _sentence_ends(stretch)
        elif unit == "words":  # each ends where the next one starts
            ends = [*(first for first, _ in word_spans(stretch)[1:]), len(stretch)]
        blank = len(stretch) - len(stretch.lstrip())  # what has no word is no segment
        lengths = [0, *(end for end in ends if end > blank)]
        most = await fit_to_limit(max_tokens, size, lengths, 0, tokens)
        if most:
            return start + most
        num_chars = lengths[1]  # too long by itself: cut it at ends of a finer kind
        tokens = await size(num_chars)
    return start + num_chars


def _sentence_ends(text: str) -> list[int]:
    """The ends of the sentences, and of the text; a session's header joins the next sentence."""
    ends: list[int] = []
    for first, last in sections(text):
        for start, end in sentence_spans(text[first:last]):
            if first + end < len(text) and num_words(text[first + start : first + end]):
                ends.append(first + end)
    return [*ends, len(text)]
