"""From the pilot to the corpus: by words, and by questions of documents of some length.

What a document costs a step follows from its words, what a question costs from its document's.
Between two lengths in the pilot rates lie on a line, beyond them they are the outermost one's.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

MEASURES = ("calls", "prompt_tokens", "uncached_tokens", "reply_tokens")
Numbers = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
Kind = frozenset[str]
"""The steps, by id, that a document still has to ask something for."""


@dataclass(frozen=True)
class Size:
    """How much a document has to do in a step; `times` are its words, or questions."""

    kind: Kind
    num_words: int
    times: int


@dataclass(frozen=True)
class Point:
    """What a document of the pilot came to in a step, all of it together."""

    size: Size
    values: Numbers


def scaled(points: Sequence[Point], sizes: Sequence[Size]) -> Numbers:
    """The sum over documents of these sizes: that of the points where they are all in the pilot.

    Documents are like those of the pilot that have the same steps to do, where there are any.
    """
    found = np.zeros(len(points[0].values)) if points else np.zeros(0)
    for kind in {size.kind for size in sizes}:
        own = [size for size in sizes if size.kind == kind]
        near = [p for p in points if p.size.kind == kind and p.size.times] or points
        found = found + _total(near, own)
    return found


def _total(points: Sequence[Point], sizes: Sequence[Size]) -> Numbers:
    by_words: dict[int, list[Point]] = defaultdict(list)
    for point in points:
        by_words[point.size.num_words].append(point)
    at = np.array(sorted(by_words), dtype=np.float64)
    table = np.array([
        np.sum([p.values for p in by_words[int(n)]], axis=0)
        / max(1, sum(p.size.times for p in by_words[int(n)]))
        for n in at
    ])  # fmt: skip
    words = np.array([size.num_words for size in sizes], dtype=np.float64)
    times = np.array([size.times for size in sizes], dtype=np.float64)
    total: Numbers = np.array([np.interp(words, at, column) @ times for column in table.T])
    return total
