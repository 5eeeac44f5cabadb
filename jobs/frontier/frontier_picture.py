"""The picture of score against tokens read, as SVG: every method named at its point, the Pareto
frontier as steps. Texts and axes have the colour of the page around it (currentColor)."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from textwrap import wrap
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from rich.cells import cell_len

from jobs.frontier.axes import linear, logarithmic
from jobs.frontier.frontier import Point
from jobs.frontier.label_places import Box, Label, around, label_boxes
from jobs.output.cells import cell, on_one_line, printable

_FRAME = Box(54, 28, 732, 372)  # of the points; what is written around them is outside
_WIDTH, _LINE = 760, 15
_OF_A_CHAR = 6.7  # pixels: fonts of code have 0.6 of their size, which is 11
_MOST_CHARS = 44  # of a label
TONES = ("#2f6fca", "#b3541e", "#1f8a4c", "#8a3a9c", "#c03650", "#12808c", "#85701a", "#68758a",
         "#6a5acd", "#a0522d", "#4d7f17", "#b0409c")  # fmt: skip
_SHAPES = (  # around a point
    "m-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0z", "m-4 -4h8v8h-8z", "m0 -5.5l5 9h-10z",
    "m0 -5.5l5.5 5.5l-5.5 5.5l-5.5 -5.5z", "m0 5.5l5 -9h-10z",
)  # fmt: skip
_OF_A_LINE = 110  # characters of a note
_NO_XML = {0xFFFE: "\ufffd", 0xFFFF: "\ufffd"}  # beside control characters
_CAPTION = (
    "Filled, joined by steps: the Pareto frontier, no other method has as high a score with fewer "
    "tokens. Bars: 95% intervals over documents, where there are ten. (n=...): over fewer answers "
    "than others, so not compared."
)
_METHOD = re.compile(r"(\w+)(?:\(([^()\[\]]*)\))?(?:\[([^()\[\]]*)\])?")
_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined, autoescape=True
)

_XY = tuple[float, float]
Link = Callable[[Point], str]
"""The address that a point's name leads to; empty: none."""


@dataclass(frozen=True)
class _Look:
    """The look of a method; variants of one, which is its family, in one tone and shape."""

    family: str
    name: str  # with the arguments in which variants of it differ
    short: str  # these alone; if they differ in one, its value
    tone: int  # of TONES
    shape: str


def frontier_svg(
    run: str,
    heading: str,
    points: Sequence[Point],
    notes: Sequence[str] = (),
    link: Link = lambda point: "",
) -> str:
    """A picture with a panel per group of the points, of which there is one at least; `heading`:
    of their score. Below it are the points without tokens or score, and the notes."""
    looks = _looks(dict.fromkeys(point.method for point in points))
    panels: list[dict[str, Any]] = []
    height = 0
    for group in dict.fromkeys(point.by for point in points):
        own = [point for point in points if point.by == group]
        panels.append({"top": height, "group": cell(group), **_panel(own, looks, link)})
        height += panels[-1]["height"]
    title = f"{run}: {heading} against tokens of the final context"
    foot = [line for text in (f"{title}. {_CAPTION}", *notes) for line in wrap(text, _OF_A_LINE)]
    made = _TEMPLATES.get_template("frontier.svg.jinja").render(
        title=title, heading=heading, panels=panels, frame=_FRAME, foot=foot, foot_top=height,
        width=max(panel["width"] for panel in panels), height=height + _LINE * len(foot) + 10,
        tones=TONES, has_groups=any(point.by is not None for point in points),
        is_linked=any(map(link, points)),
    )  # fmt: skip
    return printable(made).translate(_NO_XML)


def tones_of(methods: Iterable[str]) -> dict[str, int]:
    """The colour of each method in every picture of a run, as a number of TONES."""
    return {method: look.tone for method, look in _looks(dict.fromkeys(methods)).items()}


def _looks(methods: Iterable[str]) -> dict[str, _Look]:
    """The look of each method."""
    families: dict[str, dict[str, list[str]]] = {}
    for method in methods:
        found = _METHOD.fullmatch(method)
        name, *texts = found.groups(default="") if found else (method,)
        families.setdefault(name, {})[method] = [a for a in ",".join(texts).split(",") if a]
    looks = {}
    for place, (family, variants) in enumerate(families.items()):
        shared = set.intersection(*map(set, variants.values()))
        differing = {m: [a for a in own if a not in shared] for m, own in variants.items()}
        keys = {a.partition("=")[0] for own in differing.values() for a in own}
        for method, own in differing.items():
            name = f"{family}({','.join(own)})" if own else family
            short = ",".join(a.partition("=")[2] if len(keys) == 1 else a for a in own) or name
            tone, shape = place % len(TONES), _SHAPES[place % len(_SHAPES)]
            looks[method] = _Look(family, name, short, tone, shape)
    return looks


def _panel(points: Sequence[Point], looks: Mapping[str, _Look], link: Link) -> dict[str, Any]:
    places = {point: place for point in points if (place := point.place)}
    across = logarithmic([tokens for tokens, _ in places.values()], _FRAME.left, _FRAME.right)
    scores = [v for p in places for v in (p.score, p.low, p.high) if v is not None]
    up = linear(scores, _FRAME.bottom, _FRAME.top)
    at = {point: (across.at(x), up.at(y)) for point, (x, y) in places.items()}
    bars = {p: Box(at[p][0] - 1, up.at(p.high), at[p][0] + 1, up.at(p.low))
            for p in at if p.low is not None and p.high is not None}  # fmt: skip
    steps = _steps([at[p] for p in at if p.on_frontier])
    labels = [*_labels(at, looks)]
    marks, lines = [around(*xy, 6) for xy in at.values()], [*bars.values(), *_segments(steps)]
    sizes = [Label(*at[p], cell_len(text) * _OF_A_CHAR, _LINE)
             for p, text in zip(at, labels, strict=True)]  # fmt: skip
    boxes = label_boxes(sizes, _FRAME, marks, lines)
    left_out = [f"Not drawn: {_told(point)}" for point in points if not point.place]
    below = max([_FRAME.bottom + 56, *(box.bottom + _LINE for box in boxes)])
    return {
        "across": across,
        "up": up,
        "joins": _joins(at, looks),
        "steps": steps,
        "marks": [
            {"point": p, "x": at[p][0], "y": at[p][1], "look": looks[p.method], "bar": bars.get(p),
             "box": box, "label": label, "leader": _leader(at[p], box), "told": _told(p),
             "href": link(p)}
            for p, label, box in zip(at, labels, boxes, strict=True)
        ],
        "left_out": left_out,
        "below": below,
        "height": math.ceil(below + _LINE * len(left_out) + 12),
        "width": math.ceil(max([_WIDTH, *(box.right + 8 for box in boxes)])),
    }  # fmt: skip


def _labels(points: Iterable[Point], looks: Mapping[str, _Look]) -> Iterator[str]:
    """The names of the points' methods; of variants the first in full, later ones in short."""
    named = set[str]()
    for point in points:
        look = looks[point.method]
        label = on_one_line(look.short if look.family in named else look.name)
        named.add(look.family)
        cut = label if len(label) <= _MOST_CHARS else f"{label[: _MOST_CHARS - 1]}…"
        yield cut + ("" if point.competes else f" (n={point.n})")


def _leader(point: _XY, box: Box) -> list[_XY]:
    """The line from a point to its label, unless that is beside it."""
    end = box.nearest(*point)
    return [point, end] if math.dist(point, end) > 12 else []


def _steps(points: Sequence[_XY]) -> list[_XY]:
    """The corners of a line that rises at each of the points, and ends at the frame."""
    found = sorted(points, key=lambda xy: (xy[0], -xy[1]))
    ends = [*found[1:], (_FRAME.right, 0.0)]
    return [
        corner
        for (x, y), after in zip(found, ends, strict=False)
        for corner in ((x, y), (after[0], y))
    ]


def _segments(corners: Sequence[_XY]) -> Iterator[Box]:
    """The box of each part of a line."""
    for (x, y), (x2, y2) in pairwise(corners):
        yield Box(min(x, x2) - 1, min(y, y2) - 1, max(x, x2) + 1, max(y, y2) + 1)


def _joins(at: Mapping[Point, _XY], looks: Mapping[str, _Look]) -> Iterator[tuple[int, list[_XY]]]:
    """The tone, a number of TONES, and the places of every family of several methods."""
    families: dict[str, list[Point]] = {}
    for point in at:
        families.setdefault(looks[point.method].family, []).append(point)
    for points in families.values():
        if len(points) > 1:
            yield looks[points[0].method].tone, sorted(at[point] for point in points)


def _told(point: Point) -> str:
    """A point in words."""
    interval = "" if point.low is None else f" [{point.low:.1f}, {point.high:.1f}]"
    score = "no score" if point.score is None else f"{point.score:.1f}{interval}"
    tokens = "not counted in tokens"
    if point.tokens is not None:
        of = "" if point.tokens_n == point.n else f" ({point.tokens_n} of {point.n} answers)"
        tokens = f"{point.tokens:,.0f} tokens{of}"
    name = point.method if point.by is None else f"{point.method}, {point.by}"
    on = ", on the frontier" if point.on_frontier else ""
    return on_one_line(f"{name}: {score}, {tokens}{on}")
