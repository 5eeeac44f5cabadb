"""Places for the labels of a picture's points, none of which covers another or a point."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_SIDES = ((1, 0), (-1, 0), (1, -1), (1, 1), (-1, -1), (-1, 1), (0, -1), (0, 1))
_GAPS = (8, 14, 22, 34, 50, 70, 95, 125)  # pixels between a point and its label, nearest first
_OF_A_CROSSING = 12  # is as bad as being so many pixels further away
_NEAR = 60  # pixels within which points want the same room


@dataclass(frozen=True)
class Box:
    """A rectangle; y grows downward, as in SVG."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: "Box") -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )

    def holds(self, other: "Box") -> bool:
        return (
            self.left <= other.left
            and other.right <= self.right
            and self.top <= other.top
            and other.bottom <= self.bottom
        )

    def nearest(self, x: float, y: float) -> tuple[float, float]:
        """The place of the box that is nearest to (x, y)."""
        return min(max(x, self.left), self.right), min(max(y, self.top), self.bottom)


def around(x: float, y: float, radius: float) -> Box:
    """The square whose centre is (x, y)."""
    return Box(x - radius, y - radius, x + radius, y + radius)


def label_boxes(
    labels: Sequence[tuple[float, float, float]],
    height: float,
    frame: Box,
    marks: Sequence[Box],
    lines: Sequence[Box],
) -> list[Box]:
    """A box of this height for each label (x and y of its point, its width), in their order.

    It is within the frame and covers no box of another label and no mark; the nearer to its point
    the better, and the less is crossed: lines by it, others by the line that leads to its point.
    Where the frame is full it is in a column to the right, which is as long as it has to be. Points
    with many near ones choose first.
    """
    found: dict[int, Box] = {}
    num_outside = 0
    for place in sorted(range(len(labels)), key=lambda place: -_num_near(labels, place)):
        box = _best(labels[place], height, frame, (*marks, *found.values()), lines)
        if box is None:
            left, top = frame.right + 10, frame.top + num_outside * height
            box = Box(left, top, left + labels[place][2], top + height)
            num_outside += 1
        found[place] = box
        lines = [*lines, *_leader(*labels[place][:2], box)]
    return [found[place] for place in range(len(labels))]


def _num_near(labels: Sequence[tuple[float, float, float]], place: int) -> int:
    x, y, _ = labels[place]
    return sum(math.hypot(x - x2, y - y2) < _NEAR for x2, y2, _ in labels)


def _best(
    label: tuple[float, float, float],
    height: float,
    frame: Box,
    taken: Sequence[Box],
    lines: Sequence[Box],
) -> Box | None:
    best, least = None, math.inf
    for gap, box in _beside(*label, height):
        if gap >= least:
            break
        if not frame.holds(box) or any(map(box.meets, taken)):
            continue
        leader = _leader(label[0], label[1], box)
        crossed = sum(any(map(other.meets, leader)) for other in taken)
        cost = gap + _OF_A_CROSSING * (crossed + sum(map(box.meets, lines)))
        if cost < least:
            best, least = box, cost
    return best


def _beside(x: float, y: float, width: float, height: float) -> Iterator[tuple[int, Box]]:
    """Places for a label around a point, and how far they are from it, the nearest first."""
    for gap in _GAPS:
        for right, down in _SIDES:
            left = x + right * (gap + width / 2) - width / 2
            top = y + down * (gap + height / 2) - height / 2
            yield gap, Box(left, top, left + width, top + height)


def _leader(x: float, y: float, box: Box) -> list[Box]:
    """Boxes along the line from a point to its label, without those on the point's own mark."""
    x2, y2 = box.nearest(x, y)
    length = math.hypot(x2 - x, y2 - y)
    shares = [pixels / length for pixels in range(10, int(length), 6)]
    return [around(x + share * (x2 - x), y + share * (y2 - y), 1) for share in shares]
