"""The shape of a tree over consecutive leaves: which nodes are whose children."""

from collections.abc import Sequence
from itertools import accumulate, pairwise

Level = Sequence[Sequence[int]]
"""The children of each node of a level, by node index; leaves have none."""


def tree_levels(num_leaves: int, max_children: int) -> list[Level]:
    """The levels of a tree, leaves first and the root alone last.

    Nodes are numbered from 0 through the levels, so that a leaf has the index of its segment.
    Consecutive nodes share a parent; a level has as few parents as `max_children` (2 or more)
    allows, with numbers of children that differ by one at most: a last node with a single child
    would only repeat it. The paper does not say how the last group is filled.
    """
    levels: list[Level] = [[()] * num_leaves]
    first = 0
    while len(levels[-1]) > 1:
        below = range(first, first + len(levels[-1]))
        ends = accumulate(_group_sizes(len(below), max_children), initial=0)
        levels.append([tuple(below[start:end]) for start, end in pairwise(ends)])
        first = below.stop
    return levels


def _group_sizes(num: int, max_children: int) -> list[int]:
    groups = -(-num // max_children)
    return [num // groups + (place < num % groups) for place in range(groups)]
