"""Places for the labels of a picture's points, none of which covers another or a point."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_SIDES = ((1, 0), (-1, 0), (1, -1), (1, 1), (-1, -1), (-1, 1), (0, -1), (0, 1))
_GAPS = (8, 14, 22, 34, 50, 70, 95, 125, 160, 200)  # pixels between a point and its label
_OF_A_CROSSING = 12  # is as bad as being so many pixels further away


class Box(NamedTuple):
    """A rectangle; y grows downward, as in SVG."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: "Box") -> bool:
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom

    def holds(self, other: "Box") -> bool:
        across = self.left <= other.left and other.right <= self.right
        return across and self.top <= other.top and other.bottom <= self.bottom

    def nearest(self, x: float, y: float) -> tuple[float, float]:
        """The place of the box that is nearest to (x, y)."""
        return min(max(x, self.left), self.right), min(max(y, self.top), self.bottom)


class Label(NamedTuple):
    """A point, and the width and height of its label."""

    x: float
    y: float
    width: float
    height: float


def around(x: float, y: float, radius: float) -> Box:
    """The square whose centre is (x, y)."""
    return Box(x - radius, y - radius, x + radius, y + radius)


def label_boxes(
    labels: Sequence[Label], frame: Box, marks: Sequence[Box], lines: Sequence[Box]
) -> list[Box]:
    """A box for each label, in their order, that covers no box of another label and no mark.

    It is within the frame; the nearer to its point the better, and the less is crossed: lines by
    it, others by the line that leads to its point. Where the frame is full it is in a column to the
    right, which is as long as it has to be.
    """
    found: list[Box] = []
    num_outside = 0
    for label in labels:
        box = _best(label, frame, (*marks, *found), lines)
        if box is None:
            left, top = frame.right + 10, frame.top + num_outside * label.height
            box = Box(left, top, left + label.width, top + label.height)
            num_outside += 1
        found.append(box)
        lines = [*lines, *_leader(label, box)]
    return found


def _best(label: Label, frame: Box, taken: Sequence[Box], lines: Sequence[Box]) -> Box | None:
    best, least = None, math.inf
    for gap, box in _beside(label):
        if gap < least and frame.holds(box) and not any(map(box.meets, taken)):
            leader = _leader(label, box)
            crossed = sum(any(map(other.meets, leader)) for other in taken)
            cost = gap + _OF_A_CROSSING * (crossed + sum(map(box.meets, lines)))
            best, least = (box, cost) if cost < least else (best, least)
    return best


def _beside(label: Label) -> Iterator[tuple[int, Box]]:
    """Places around a label's point, and how far they are from it."""
    x, y, width, height = label
    for gap in _GAPS:
        for right, down in _SIDES:
            left = x + right * (gap + width / 2) - width / 2
            top = y + down * (gap + height / 2) - height / 2
            yield gap, Box(left, top, left + width, top + height)


def _leader(label: Label, box: Box) -> list[Box]:
    """Boxes along the line from a point to its label, without those on the point's own mark."""
    x, y = label.x, label.y
    x2, y2 = box.nearest(x, y)
    length = math.hypot(x2 - x, y2 - y)
    shares = [pixels / length for pixels in range(10, int(length), 6)]
    return [around(x + share * (x2 - x), y + share * (y2 - y), 1) for share in shares]
