"""Score against tokens read: the Pareto frontier by hand, its picture, and its export."""

import csv
import io
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from jobs.export.frontier import Point, chosen_column, drawn_columns, frontier_svg, points_of
from jobs.report.report import Report, Row, Tokens
from jobs.statistics.means import Mean
from pipeline.core.errors import UsageError
from pipeline.work.stage import Column
from tests.support.command import refused, succeed
from tests.support.runs.compared_run import ComparedRun

SVG = "{http://www.w3.org/2000/svg}"
EM = Column("em", "EM", 40)
COLUMNS = (Column("words_read", "words read", 80), EM, Column("lr_1", "LR-1", 30))


def rows_of(
    *rows: tuple[str, float | None, float | None], by: str | None = None, n: int = 10
) -> tuple[Row, ...]:
    """A row for each method, its mean tokens and its score over `n` answers."""
    return tuple(
        Row(method, by, {} if score is None else {"em": Mean(score, n, score, n)}, {"n": n},
            tokens={} if tokens is None else {"em": Tokens(tokens, n)})
        for method, tokens, score in rows
    )  # fmt: skip


def report_of(*rows: Row) -> Report:
    inputs = {"planned": 9, "not_done": 0}
    return Report("night", inputs, COLUMNS, ("em", "lr_1"), rows, {}, (), (), {})


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (rows_of(("a", 100, 20), ("b", 200, 30), ("c", 300, 25), ("d", 400, 40)), "abd"),
        (rows_of(("d", 400, 40), ("c", 300, 25), ("b", 200, 30), ("a", 100, 20)), "dba"),
        (rows_of(("a", 100, 20), ("b", 100, 30)), "b"),  # as many tokens
        (rows_of(("a", 100, 20), ("b", 200, 20)), "a"),  # as high a score
        (rows_of(("a", 100, 20), ("b", 100, 20)), "ab"),  # both: neither leaves the other behind
        (rows_of(("a", 0, 20), ("b", 5000, 19.9)), "a"),  # a floor that reads nothing takes part
        (rows_of(("a", 100, 0), ("b", 200, 0), ("c", 50, 0)), "c"),  # all failed
        (rows_of(("a", 100, 20), ("b", None, 90), ("c", 200, 30)), "ac"),  # without tokens
        (rows_of(("a", 100, None), ("b", 200, 30)), "b"),  # without a score
        (rows_of(("a", None, 20), ("b", None, 30)), ""),
        (rows_of(("a", 0.1 + 0.2, 20), ("b", 0.3, 0.1 + 0.7), ("c", 0.3, 20)), "ac"),  # equal
        # Means over fewer answers, of other questions, are not compared; more answers without
        # tokens do not count. Every group has a frontier of its own.
        (rows_of(("e", 50, 99), n=7) + rows_of(("a", 100, 20)) + rows_of(("b", None, 50), n=20),
         "a"),
        (rows_of(("a", 100, 20), ("b", 200, 10), by="why")
         + rows_of(("a", 100, 5), ("b", 200, 10), by="who", n=3), "aab"),
    ],
)  # fmt: skip
def test_the_frontier_is_what_no_other_leaves_behind(rows: tuple[Row, ...], expected: str) -> None:
    points = points_of(report_of(*rows), EM)
    assert "".join(point.method for point in points if point.on_frontier) == expected


def test_the_measure_is_one_of_answers_that_has_values() -> None:
    report = report_of(*rows_of(("a", 100, 20)))
    assert [column.measure for column in drawn_columns(report)] == ["em"], "LR-1 has none"
    assert {chosen_column(report, name).measure for name in (None, "em", "EM")} == {"em"}
    for wrong in ("lr_1", "words_read", "em "):
        with pytest.raises(UsageError, match=f"metric={wrong}: no score"):
            chosen_column(report, wrong)
    with pytest.raises(UsageError, match="no answer has a score"):
        chosen_column(report_of(*rows_of(("a", 100, None))), None)


def test_the_picture() -> None:
    points = [
        Point("nothing", None, 0, 10, None, None, 10, 10, True, True),
        Point("k(n=1)", None, 1000, 30, 20, 40, 10, 10, True, True),
        Point("k(n=2)", None, 10_000, 20, None, None, 10, 10, True),
        Point("theirs", None, None, 50, None, None, 10, 0),
    ]
    svg = ElementTree.fromstring(frontier_svg("night", "EM", points))
    texts = [(text.get("text-anchor"), text.text, text.attrib) for text in svg.iter(f"{SVG}text")]
    x = {text: at["x"] for anchor, text, at in texts if anchor == "middle" and "x" in at}
    y = {text: float(at["y"]) - 4 for anchor, text, at in texts if anchor == "end"}
    marks = [m for m in svg.iter(f"{SVG}g") if m.get("class", "").startswith("method")]
    assert [mark.get("class") for mark in marks] == [f"method tone-{n}" for n in (0, 1, 1, 2)]
    legend = [mark.findtext(f"{SVG}text") for mark in marks]
    assert legend == [
        "nothing: 10.0 (n=10), 0 tokens, on the frontier",
        "k(n=1): 30.0 (n=10), 1,000 tokens, on the frontier", "k(n=2): 20.0 (n=10), 10,000 tokens",
        "theirs: 50.0 (n=10), not counted in tokens; not drawn",
    ]  # fmt: skip
    paths = [[path.attrib["d"] for path in mark.iter(f"{SVG}path")] for mark in marks]
    assert [len(drawn) for drawn in paths] == [2, 3, 2, 1], "the legend's, the point, the bar"
    for drawn, across, up in zip(paths, ("1", "1,000", "10,000"), ("10", "30", "20"), strict=False):
        assert drawn[-2].startswith(f"M{x[across]} {y[up]}m")
    assert paths[1][0] == f"M{x['1,000']} {y['40']}V{y['20']}"
    (steps,) = [p.attrib["d"] for p in svg.iter(f"{SVG}path") if p.get("class") == "frontier"]
    assert steps.endswith(f"H{x['1,000']}V{y['30']}H732")


def test_no_text_of_a_run_is_read_as_svg() -> None:
    name = "<script>alert(1)</script> & \x1b[2J \uffff \ud800"
    points = points_of(report_of(*rows_of((name, 100, 5), by=name)), EM)
    svg = frontier_svg(name, name, points, [name])
    assert not [*ElementTree.fromstring(svg).iter(f"{SVG}script")]
    assert "style=" not in svg, "the page's policy would refuse it"


SCORES = {"cheap(k=1)": 20, "cheap(k=2)": 50, "dear": 40, "theirs": 100}  # so many are right, in %
TOKENS = {"cheap(k=1)": 500, "cheap(k=2)": 1500, "dear": 40_000}  # theirs: none


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> ComparedRun:
    """Ten documents, as intervals need them, with a question each. Tokens are in the table of
    scores here, which is a measure like any other."""
    run = ComparedRun(tmp_path_factory.mktemp("run"))
    scores: dict[str, Any] = {}
    for method, score in SCORES.items():
        values = {f"{letter}1": 100.0 * (10 * n < score) for n, letter in enumerate("abcdefghij")}
        scores[method] = {"squad_em": values}
        if method in TOKENS:
            scores[method]["tokens_read"] = dict.fromkeys(values, float(TOKENS[method]))
    run.add("r", scores)
    return run


def test_the_points_as_csv_and_json(run: ComparedRun, tmp_path: Path) -> None:
    out = succeed("export", "frontier", *run.words)
    rows = {row["method"]: row for row in csv.DictReader(io.StringIO(out))}
    assert {method: float(row["score"]) for method, row in rows.items()} == SCORES
    for method, row in rows.items():
        assert row["tokens"] == (f"{TOKENS[method]}.0" if method in TOKENS else "")
        assert (row["n"], row["by"]) == ("10", "")
        assert float(row["low"]) <= float(row["score"]) <= float(row["high"])
    assert [row["on_frontier"] for row in rows.values()] == ["1", "1", "0", "0"]
    assert [row["competes"] for row in rows.values()] == ["1", "1", "1", "0"]
    file = tmp_path / "points.json"
    assert succeed("export", "frontier", *run.words, f"to={file}") == f"4 rows in {file}\n"
    content = json.loads(file.read_text())
    assert (content["run"], content["metric"]) == ("r", "squad_em")
    assert [point["on_frontier"] for point in content["points"]] == [True, True, False, False]
    assert content["points"][3]["tokens"] is None


@pytest.mark.slow
def test_tokens_are_of_the_answers_that_have_the_score(tmp_path: Path) -> None:
    """Of three answers one has no score, and the context of another was not counted."""
    run = ComparedRun(tmp_path)
    tokens = {"a1": 100.0, "a2": 9000.0, "b1": None}
    run.add("r", {"m": {"squad_em": {"a1": 50.0, "a2": None, "b1": 0.0}, "tokens_read": tokens,
                        "part_1": {"a2": 4.0}, "part_2": {"a2": 9.0}}})  # fmt: skip
    for metric, expected in (
        ("squad_em", ("100.0", "25.0", "2", "1")),
        ("geo", ("9000.0", "6.0", "1", "1")),
        ("by group", ("100.0", "25.0", "2", "1")),
    ):
        out = succeed("export", "frontier", *run.words, f"metric={metric}")
        (row,) = csv.DictReader(io.StringIO(out))
        assert (row["tokens"], row["score"], row["n"], row["tokens_n"]) == expected


@pytest.mark.parametrize(
    ("mistake", "says"),
    [
        (["to={}/a.png"], "a.png: write a file that ends in .svg, .csv or .json"),
        (["metric=nosuch"], "metric=nosuch: no score of run=r; there are squad_em"),
        (["where=false"], "where=false: leaves no question of the run"),
        (["by=nosuch"], "Binder Error"),
        (["method=dear"], "'method=dear': unknown word; there are warehouse, run, metric"),
    ],
)
def test_mistakes(run: ComparedRun, tmp_path: Path, mistake: list[str], says: str) -> None:
    words = [word.replace("{}", str(tmp_path)) for word in mistake]
    assert says in refused("export", "frontier", *run.words, *words)
    assert list(tmp_path.iterdir()) == []


def test_a_run_without_tokens_or_without_scores(tmp_path: Path) -> None:
    run = ComparedRun(tmp_path)
    run.add("old", {"m": {"squad_em": {"a1": 1.0}}})
    told = refused("export", "frontier", "run=old", *run.words)
    assert told.startswith("run=old: no method has both squad_em and tokens")
    run.add("unscored", {"m": {"tokens_read": {"a1": 1.0}}}, version=2)
    says = refused("export", "frontier", "run=unscored", *run.words)
    assert says == "run=unscored: no answer has a score"
