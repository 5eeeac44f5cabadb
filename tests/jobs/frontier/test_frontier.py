"""Score against tokens read: the Pareto frontier worked by hand, and where its picture has what."""

import math
import random
import re
from itertools import combinations
from xml.etree import ElementTree

import pytest
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath

from jobs.frontier.axes import linear, logarithmic
from jobs.frontier.frontier import Point, chosen_column, drawn_columns, points_of
from jobs.frontier.frontier_picture import frontier_svg
from jobs.frontier.label_places import Box, Label, around, label_boxes
from jobs.report.report import Report, Row, Tokens
from jobs.statistics.means import Mean
from pipeline.core.errors import UsageError
from pipeline.work.stage import Column

SVG = "{http://www.w3.org/2000/svg}"
EM = Column("em", "EM", 40)
COLUMNS = (Column("words_read", "words read", 80), EM, Column("lr_1", "LR-1", 30))
Given = tuple[str, float | None, float | None]
"""A method, its mean tokens and its score."""


def report_of(*rows: Given, by: str | None = None, n: int = 10) -> Report:
    return Report("night", {"planned": 9, "not_done": 0}, COLUMNS, ("em", "lr_1"),
                  tuple(row(*one, by, n) for one in rows), {}, (), (), {})  # fmt: skip


def row(method: str, tokens: float | None, score: float | None, by: str | None, n: int) -> Row:
    means = {} if score is None else {"em": Mean(score, n, score, n)}
    return Row(
        method, by, means, {"n": n}, tokens={} if tokens is None else {"em": Tokens(tokens, n)}
    )


def joined(*reports: Report) -> Report:
    rows = tuple(row for report in reports for row in report.rows)
    return Report("night", reports[0].inputs, COLUMNS, ("em", "lr_1"), rows, {}, (), (), {})


def frontier(report: Report) -> list[str]:
    return [point.method for point in points_of(report, EM) if point.on_frontier]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([("a", 100, 20), ("b", 200, 30), ("c", 300, 25), ("d", 400, 40)], "abd"),
        ([("d", 400, 40), ("c", 300, 25), ("b", 200, 30), ("a", 100, 20)], "dba"),  # in any order
        ([("a", 500, 7)], "a"),
        ([("a", 100, 20), ("b", 100, 30)], "b"),  # as many tokens
        ([("a", 100, 20), ("b", 200, 20)], "a"),  # as high a score
        ([("a", 100, 20), ("b", 100, 20)], "ab"),  # both: neither leaves the other behind
        ([("a", 100, 20), ("b", 100, 20), ("c", 90, 20)], "c"),
        ([("a", 0, 20), ("b", 5000, 19.9)], "a"),  # a floor that reads nothing takes part
        ([("a", 100, 0), ("b", 200, 0), ("c", 50, 0)], "c"),  # all failed
        ([("a", 100, 20), ("b", None, 90), ("c", 200, 30)], "ac"),  # imported: without tokens
        ([("a", 100, None), ("b", 200, 30)], "b"),  # without a score
        ([("a", None, 20), ("b", None, 30)], ""),
        ([("a", 0.1 + 0.2, 20), ("b", 0.3, 0.1 + 0.7), ("c", 0.3, 20)], "ac"),  # equal but for bits
    ],
)
def test_the_frontier_is_what_no_other_leaves_behind(rows: list[Given], expected: str) -> None:
    assert frontier(report_of(*rows)) == [*expected]


def test_a_mean_over_fewer_answers_is_not_compared() -> None:
    """It is of other questions; more answers without tokens do not count either."""
    fewer, most = report_of(("easy", 50, 99), n=7), report_of(("a", 100, 20), ("b", 200, 30))
    imported = report_of(("theirs", None, 50), n=20)
    points = points_of(joined(fewer, most, imported), EM)
    assert [point.competes for point in points] == [False, True, True, False]
    assert frontier(joined(fewer, most, imported)) == ["a", "b"]


def test_every_group_has_a_frontier_of_its_own() -> None:
    why = report_of(("a", 100, 20), ("b", 200, 10), by="why")
    who = report_of(("a", 100, 5), ("b", 200, 10), by="who", n=3)
    found = [(p.method, p.by) for p in points_of(joined(why, who), EM) if p.on_frontier]
    assert found == [("a", "why"), ("a", "who"), ("b", "who")]


def test_the_measure_is_one_of_answers_that_has_values() -> None:
    report = report_of(("a", 100, 20))
    assert [column.measure for column in drawn_columns(report)] == ["em"], "LR-1 has none"
    assert {chosen_column(report, name).measure for name in (None, "em", "EM")} == {"em"}
    for wrong in ("lr_1", "words_read", "em "):
        with pytest.raises(
            UsageError, match=f"metric={wrong}: no score of run=night; there are em"
        ):
            chosen_column(report, wrong)
    with pytest.raises(UsageError, match="run=night: no answer has a score"):
        chosen_column(report_of(("a", 100, None)), None)


def drawn(rows: list[Given]) -> ElementTree.Element:
    return ElementTree.fromstring(frontier_svg("night", "EM", points_of(report_of(*rows), EM)))


def numbers(element: ElementTree.Element, *names: str) -> list[float]:
    return [float(element.attrib[name]) for name in names]


def marks(svg: ElementTree.Element) -> dict[str, tuple[float, float, str]]:
    """The place of every point and its shape, by the method's name in its title."""
    found = {}
    for group in svg.iter(f"{SVG}g"):
        if group.attrib.get("class", "").startswith("method "):
            *_, mark = group.iter(f"{SVG}path")
            x, y, shape = re.fullmatch(r"M(\S+) (\S+)(m.*)", mark.attrib["d"]).groups()  # type: ignore[union-attr]
            title = group.findtext(f"{SVG}title") or ""
            found[title.rpartition(":")[0].partition(": ")[0]] = (float(x), float(y), shape)
    return found


def at_numbers(svg: ElementTree.Element, anchor: str) -> dict[str, list[float]]:
    """Where the numbers of an axis stand, by their text."""
    return {text.text or "": numbers(text, "x", "y") for text in svg.iter(f"{SVG}text")
            if text.attrib.get("text-anchor") == anchor and "x" in text.attrib}  # fmt: skip


ROWS: list[Given] = [
    ("nothing", 0, 5), ("k(n=1)", 500, 10), ("k(n=2)", 1000, 30), ("k(n=3)", 20_000, 20),
    ("all", 100_000, 40), ("Their system", None, 33.33),
]  # fmt: skip


def test_points_are_where_the_axes_say() -> None:
    svg = drawn(ROWS)
    found, across, up = marks(svg), at_numbers(svg, "middle"), at_numbers(svg, "end")
    assert found["k(n=2)"][0] == across["1,000"][0]
    assert found["k(n=3)"][0] == across["20,000"][0]
    assert found["all"][0] == across["100,000"][0]
    assert found["nothing"][0] == across["0"][0] < found["k(n=1)"][0]
    doubled = across["2,000"][0] - across["1,000"][0]
    assert across["1,000"][0] - across["500"][0] == pytest.approx(doubled, abs=0.2), "logarithmic"
    for name, score in (("k(n=1)", "10"), ("k(n=2)", "30"), ("all", "40")):
        assert found[name][1] == up[score][1] - 4  # the baseline of a text
    assert found["all"][1] < found["nothing"][1], "more is higher"


def test_the_frontier_is_drawn_in_steps() -> None:
    svg = drawn(ROWS)
    found = {name: place[:2] for name, place in marks(svg).items()}
    (path,) = [p for p in svg.iter(f"{SVG}path") if p.attrib.get("class") == "frontier"]
    values = [float(number) for number in path.attrib["d"][1:].split()]
    corners = [*zip(values[::2], values[1::2], strict=True)]
    (x0, y0), (x1, y1), (x2, y2), (x3, y3) = (
        found[n] for n in ("nothing", "k(n=1)", "k(n=2)", "all")
    )
    end = corners[-1][0]
    assert corners == [
        (x0, y0),
        (x1, y0),
        (x1, y1),
        (x2, y1),
        (x2, y2),
        (x3, y2),
        (x3, y3),
        (end, y3),
    ]
    assert end > x3


def test_variants_share_a_shape_and_are_joined_and_a_point_without_tokens_is_listed() -> None:
    svg = drawn(ROWS)
    found = marks(svg)
    shapes = [found[name][2] for name in ("nothing", "k(n=1)", "k(n=2)", "k(n=3)", "all")]
    assert shapes[1] == shapes[2] == shapes[3] and len(set(shapes)) == 3
    between = " ".join(f"{x} {y}" for x, y, _ in (found[f"k(n={n})"] for n in (1, 2, 3)))
    assert [p for p in svg.iter(f"{SVG}path") if p.attrib["d"].strip() == f"M{between}"]
    labels = [text.text for text in svg.iter(f"{SVG}text") if text.attrib.get("class") == "label"]
    assert labels == ["nothing", "k(n=1)", "2", "3", "all"]
    texts = [text.text for text in svg.iter(f"{SVG}text")]
    assert "Not drawn: Their system: 33.3, not counted in tokens" in texts
    said = svg.findtext(f"{SVG}desc") or ""
    assert "k(n=2): 30.0, 1,000 tokens, on the frontier." in said
    assert "k(n=3): 20.0, 20,000 tokens." in said


def test_names_have_the_arguments_in_which_variants_differ() -> None:
    names = [
        "f(k=1,keep=first)", "f(k=2,keep=first)", "g(a=1,b=x)[memory=m]", "g(a=2,b=y)[memory=m]",
        "h", "h[memory=m]", "i(a=1,b=2)", "Theirs (v1)", "Theirs (v2)", "x" * 60,
    ]  # fmt: skip
    svg = drawn([(name, 100 * place, place) for place, name in enumerate(names, 1)])
    labels = [text.text for text in svg.iter(f"{SVG}text") if text.attrib.get("class") == "label"]
    assert labels == ["f(k=1)", "2", "g(a=1,b=x)", "a=2,b=y", "h", "m", "i", "Theirs (v1)",
                      "Theirs (v2)", f"{'x' * 43}…"]  # fmt: skip


def test_whiskers_and_answers_that_are_fewer() -> None:
    points = [
        Point("a", None, 100, 20, 10, 40, 9, 9, True, True),
        Point("b", None, 90, 30, None, None, 4, 3),
    ]
    svg = ElementTree.fromstring(frontier_svg("night", "EM", points))
    up = at_numbers(svg, "end")
    x, _, _ = marks(svg)["a"]
    assert [
        p
        for p in svg.iter(f"{SVG}path")
        if p.attrib["d"] == f"M{x} {up['40'][1] - 4}V{up['10'][1] - 4}"
    ]
    assert svg.findtext(f".//{SVG}text[@class='label'][last()]") == "a"
    assert "b: 30.0, 90 tokens (3 of 4 answers)" in [
        title.text for title in svg.iter(f"{SVG}title")
    ]
    assert "b (n=4)" in [text.text for text in svg.iter(f"{SVG}text")]


def test_a_group_without_a_point_is_a_panel_all_the_same() -> None:
    report = joined(report_of(("a", 100, 5), by="why"), report_of(("a", None, 5), by="who"))
    svg = ElementTree.fromstring(frontier_svg("night", "EM", points_of(report, EM)))
    texts = [text.text for text in svg.iter(f"{SVG}text")]
    assert (
        texts.index("why")
        < texts.index("who")
        < texts.index("Not drawn: a, who: 5.0, not counted in tokens")
    )


def test_no_text_of_a_run_is_read_as_svg() -> None:
    name = "<script>alert(1)</script> & \x1b[2J \uffff \ud800"
    svg = frontier_svg(name, name, points_of(report_of((name, 100, 5), by=name), EM), [name],
                       lambda point: '#"><script>')  # fmt: skip
    found = ElementTree.fromstring(svg)
    assert not [*found.iter(f"{SVG}script")]
    assert [link.attrib["href"] for link in found.iter(f"{SVG}a")] == ['#"><script>']
    assert "style=" not in svg, "the page's policy would refuse it"


def boxes_of(svg: ElementTree.Element) -> dict[str, Box]:
    """The rectangle of ink of every label, by DejaVu Sans Mono's own outlines."""
    font, found = FontProperties(family="DejaVu Sans Mono"), {}
    for text in svg.iter(f"{SVG}text"):
        if text.attrib.get("class") == "label":
            (x, y), (size,) = numbers(text, "x", "y"), numbers(text, "font-size")
            ink = TextPath((x, 0), text.text or "", size=size, prop=font).get_extents()
            found[f"{text.text} {x} {y}"] = Box(ink.x0, y - ink.y1, ink.x1, y - ink.y0)
    return found


def crowd(number: int, seed: int) -> list[Given]:
    """Methods of which all are near a line, some on the same place."""
    draw = random.Random(seed)
    tokens = [draw.choice([0, 512, 1000, draw.uniform(500, 100_000)]) for _ in range(number)]
    return [(f"method_{place % 7}(top_k={place},keep=first)", t, round(t**0.1 * 10))
            for place, t in enumerate(tokens)]  # fmt: skip


@pytest.mark.parametrize(("number", "seed"), [(1, 0), (25, 1), (40, 2), (120, 3)])
def test_no_label_covers_another_or_a_point(number: int, seed: int) -> None:
    svg = drawn(crowd(number, seed))
    labels = boxes_of(svg)
    assert len(labels) == number
    assert [pair for pair in combinations(labels.values(), 2) if pair[0].meets(pair[1])] == []
    width, height = numbers(svg, "width", "height")
    assert all(Box(0, 0, width, height).holds(box) for box in labels.values())
    points = [around(x, y, 3) for x, y, _ in marks(svg).values()]
    assert not [box for box in labels.values() if any(map(box.meets, points))]


def test_the_picture_is_the_same_every_time() -> None:
    points = points_of(report_of(*crowd(30, 5)), EM)
    assert frontier_svg("night", "EM", points) == frontier_svg("night", "EM", points)


def test_a_label_is_beside_its_point_and_off_the_lines() -> None:
    frame, steps = Box(0, 0, 400, 300), Box(100, 149, 400, 151)
    (box,) = label_boxes([Label(100, 150, 80, 15)], frame, [around(100, 150, 6)], [steps])
    assert frame.holds(box) and not box.meets(steps)
    assert math.dist(box.nearest(100, 150), (100, 150)) < 15
    full = [Box(0, 0, 400, 300)]
    outside = label_boxes([Label(100, 150, 80, 15), Label(110, 150, 80, 15)], frame, full, [])
    assert all(box.left > frame.right for box in outside) and not outside[0].meets(outside[1])


@pytest.mark.parametrize(
    "values", [[], [0], [0.2, 0], [700], [1100, 1900], [500, 100_000], [2, 3e9]]
)
def test_axes_have_some_round_numbers(values: list[float]) -> None:
    for axis in (logarithmic(values, 50, 750), linear(values, 350, 20)):
        places = [place for place, _ in axis.ticks]
        assert 2 <= len(places) <= 12
        assert places == sorted(places, reverse=places[0] > places[-1])
        assert all(20 <= place <= 750 for place in places)
        assert all(min(50, 20) <= axis.at(value) <= 750 for value in values)
