"""`gistmill export`: answers and tables as files of other programs; and the Pareto frontier."""

import csv
import io
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from upath import UPath

from jobs.config.options import ReadOptions
from jobs.export.export_run import TABLE_FORMATS
from jobs.export.frontier import Point, chosen_column, drawn_columns, frontier_svg, points_of
from jobs.output.print_tables import csv_text
from jobs.report.report import Report, Row, Tokens, make_report
from jobs.statistics.statistics import Mean
from pipeline.core.errors import UsageError
from pipeline.work.stage import Column
from stages.read.imported_answers import read_predictions
from tests.support.clusters.s3_server import BUCKET, client, s3_server
from tests.support.command import DATA, gistmill, refused, succeed
from tests.support.runs.compared_run import ComparedRun
from tests.support.runs.finished_run import FinishedRun
from tests.support.runs.hand_numbers import ORDER, WORKED
from tests.support.runs.hand_run import HandRun

BM25 = "bm25(top_k=1)"


def words(hand: HandRun, *more: str) -> list[str]:
    return [f"warehouse={hand.warehouse}", "run=hand", *more]


def given(method: str) -> dict[str, str | None]:
    return dict(zip(ORDER, WORKED[method].answers, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("form", ["jsonl", "scrolls", "longmemeval"])
def test_answers_that_score_reads_again(hand: HandRun, tmp_path: Path, form: str) -> None:
    file = tmp_path / f"answers.{'json' if form == 'scrolls' else 'jsonl'}"
    done = succeed("export", "predictions", *words(hand), "method=bm25", f"format={form}",
                   f"to={file}")  # fmt: skip
    assert done == f"6 rows in {file}\n"
    if form == "jsonl":
        assert read_predictions(str(file)) == given(BM25)
        rows = {row["question_id"]: row for row in map(json.loads, file.read_text().splitlines())}
        assert rows["t1"] == {
            "question_id": "t1", "document_id": "tide", "method": BM25, "repeat": 0, "answer": "C",
            "answer_index": 2, "problem": None,
        }  # fmt: skip
        assert rows["b1"]["problem"] == "upstream"
    else:  # the text of the option that is chosen, and "" for no answer
        chosen = {"t1": "Gulls and waves", "l1": "Four"}
        expected = {question: answer or "" for question, answer in given(BM25).items()}
        assert read_predictions(str(file)) == {**expected, **chosen}


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.slow
def test_the_report_as_csv(hand: HandRun) -> None:
    """m1, m2, l2 and b1 are free-form; one answer of readagent_p's is in its reference's words,
    so squad_em is 25."""
    rows = rows_of(succeed("export", "report", *words(hand)))
    report = make_report(ReadOptions(UPath(hand.warehouse), "hand"))
    assert [row["method"] for row in rows] == [row.method for row in report.rows]
    (row,) = [row for row in rows if row["method"] == "readagent_p(max_pages=2)"]
    assert (row["n"], row["squad_em"], row["squad_em_n"]) == ("6", "25.0", "4")
    assert float(row["lr_1"]) == pytest.approx(100 / 3)
    by = rows_of(succeed("export", "report", *words(hand, "by=question_type", "method=bm25")))
    assert {row["group"] for row in by} == {"", "why", "two_places", "detail"}
    assert {row["method"] for row in by} == {BM25}
    assert "lr_1_low" in rows_of(succeed("export", "report", *words(hand), "--intervals"))[0]
    bm25 = ("export", "report", *words(hand, "columns=recall,LR-1,tokens", "method=bm25"))
    names = [f"{name}{n}" for name in ("evidence_recall", "lr_1", "tokens") for n in ("", "_n")]
    assert [*rows_of(succeed(*bm25))[0]] == ["method", "n", *names]
    head = succeed(*bm25, "format=markdown").splitlines()[2]
    assert re.findall(r"[^ |]+", head) == ["Method", "n", "Recall", "LR-1", "Tokens"]


def of_values(*values: tuple[str, float | None, int], by: str | None = None) -> list[Row]:
    """Rows of ten answers; a method with a star is marked as the best."""
    return [
        Row(name.strip("*"), by, {"lr_1": Mean(value, n, value, n, 1.0, 9.0)}, {"n": 10},
            ("lr_1",) if "*" in name else ())
        for name, value, n in values
    ]  # fmt: skip


def table(form: str, rows: Sequence[Row], **options: Any) -> list[str]:
    """The lines of the table that a paper prints."""
    foot = {"corpus": "a % b\n\\c", "engine": "x", "repeats": 1, "repeat_from": "memory"}
    inputs, sizes = {"planned": 9, "not_done": 0}, {"documents": 3}
    column = Column("lr_1", "LR-1", 30, more_is_better=True)
    report = Report("night", inputs, (column,), ("lr_1",), tuple(rows), sizes, (), (), foot)
    out = TABLE_FORMATS[form](report, ReadOptions(run="night", **options), False)
    return [line for line in out.splitlines() if line]


def latex(rows: Sequence[Row]) -> list[str]:
    """The rows, without the heading."""
    first, *lines = table("latex", rows)
    assert first == "% gistmill, run night, corpus a % b \\c, engine x"
    return [line.removesuffix(r" \\") for line in lines if line.endswith(r"\\")][1:]


def test_the_best_are_bold_and_nothing_is_obeyed() -> None:
    """c is over fewer questions, the fourth has no value; of e's answers seven have no problem."""
    hostile, shown = "50% \\input{x} & $1 #2", r"50\% \textbackslash{}input\{x\} \& \$1 \#2"
    rows = of_values(("a*", 41.04, 10), ("b*", 41.01, 10), ("c", 90.0, 4), (hostile, None, 10))
    for numbers in ((7.0, 10, 10.0, 7), (7.0, 9, 10.0, 7), (0.0, 10, None, 0)):
        rows.append(Row("e", None, {"lr_1": Mean(*numbers)}, {"n": 10}))
    assert latex(rows) == [
        r"a & 10 & \textbf{41.0}", r"b & 10 & \textbf{41.0}", r"c & 10 & 90.0 ($n$=4)",
        f"{shown} & 10 & --", "e & 10 & 7.0 (7 answered)", "e & 10 & 7.0 ($n$=9, 7 answered)",
        "e & 10 & 0.0 (0 answered)",
    ]  # fmt: skip
    groups = [*of_values(("a", 1.0, 10), ("b*", 2.0, 10), by="x_1"),
              *of_values(("a", 4.0, 10), by="y")]  # fmt: skip
    assert latex(groups) == [
        r"a & x\_1 & 10 & 1.0", r"b & x\_1 & 10 & \textbf{2.0}", r"a & y & 10 & 4.0",
    ]  # fmt: skip


def test_an_n_that_a_column_shares_stands_in_its_heading() -> None:
    lines = table("latex", of_values(("a", 1.0, 4), ("b", 2.0, 4)))
    assert r"Method & $n$ & LR{-}1 ($n$=4) \\" in lines
    assert [line for line in lines if "10" in line][1:] == [r"a & 10 & 1.0 \\", r"b & 10 & 2.0 \\"]


def test_the_table_as_markdown() -> None:
    rows = of_values((f"{BM25}*", 41.0, 10), ("bm25(top_k=3)", 7.0, 10), ("c", 90.0, 4))
    caption, head, _, *body = table("markdown", rows)
    assert caption.startswith("a %, 10 questions about 3 documents. Means over all answers; a pro")
    assert "(n=...): over so many answers" in caption
    assert " Bold: from the highest mean of" in caption
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in (head, *body)]
    assert cells == [
        ["Method", "n", "LR-1", "Calls", "Tokens"],
        ["BM25 (top_k=1)", "10", "**41.0**", "-", "-"],
        ["BM25 (top_k=3)", "10", "7.0", "-", "-"],
        ["c", "10", "90.0 (n=4)", "-", "-"],
    ]
    chosen = {"names": "canonical", "columns": "LR-1", "caption": "So <it> is"}
    caption, _, _, first, *_ = table("markdown", rows, **chosen)
    assert caption == "So &lt;it> is"
    assert [cell.strip() for cell in first.split("|")] == ["", BM25, "10", "**41.0**", ""]


@pytest.mark.slow
def test_exports_of_a_run_that_is_not_complete_say_so(tmp_path: Path) -> None:
    night = FinishedRun(tmp_path)
    of_run = (f"warehouse={night.warehouse}", "run=night")
    exports = [("report", "format=latex", "columns=calls"), ("report",), ("predictions",)]
    assert all(not gistmill("export", *export, *of_run).stderr for export in exports)
    night.shard("scores").unlink()
    for export in exports:
        done = gistmill("export", *export, *of_run)
        assert done.returncode == 0
        assert re.fullmatch(r"INCOMPLETE: \d+ of \d+ inputs of run=night are .*\n", done.stderr)
        assert ("INCOMPLETE: " in done.stdout) == ("format=latex" in export)  # in its caption


def test_a_spreadsheet_takes_no_cell_for_a_formula() -> None:
    values = ["=1+1", "+1", "-1", "@x", "\tx", " =1", "＝1", "fine", "a=b", -1.5, None]
    rows = rows_of(csv_text([{"=a": value} for value in values], ["=a"]))
    assert [row["'=a"] for row in rows[:-1]] == [
        "'=1+1", "'+1", "'-1", "'@x", "\tx", "' =1", "'＝1", "fine", "a=b", "-1.5",
    ]  # fmt: skip
    assert "\x1b" not in csv_text([{"a": "\x1b[2J"}], ["a"])


@pytest.mark.slow
def test_a_file_that_exists_is_replaced_only_by_force(hand: HandRun, tmp_path: Path) -> None:
    file = tmp_path / "table.tex"
    file.write_text("mine")
    export = ["export", "report", *words(hand), "format=latex", f"to={file}"]
    assert refused(*export) == f"to={file}: exists already; name another file, or add --force"
    assert file.read_text() == "mine"
    succeed(*export, "--force")
    assert file.read_text().startswith("% gistmill, run hand")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mistake", "says"),
    [
        (["predictions", "method=bm26"], "'bm26': no such method in run hand; nearest: bm25(top_k"),
        (["predictions"], "method= must name one method of the run: bm25(top_k=1), closed_book"),
        (["predictions", "method=bm25", "format=xml"], "there are jsonl, scrolls, longmemeval"),
        (["predictions", "method=bm25", "where=false"], "where=false: leaves no answer of bm25"),
        (["report", "format=html"], "format=html: no such format; there are csv, latex, mark"),
        (["report", "columns=nosuch"], "columns=nosuch: no such column; the run has lr_1 (LR-"),
        (["report", "caption=A"], "caption= is for format=latex and markdown; leave it out"),
        (["report", "format=latex", "names={}/n.yaml"], "n.yaml: cannot be reached (No such f"),
        (["report", "method=nosuch"], "method=nosuch: not in the run; nearest: "),
        (["report", "to={}"], ": no file but a folder or a device; name a file"),
        (["frontier", "to={}/a.png"], "a.png: write a file that ends in .svg, .csv or .json"),
        (["frontier", "metric=nosuch"], "metric=nosuch: no score of run=hand; there are lr_1, "),
        (["frontier", "where=false"], "where=false: leaves no question of the run"),
        (["frontier", "by=nosuch"], "Binder Error"),
    ],
)  # fmt: skip
def test_mistakes(hand: HandRun, tmp_path: Path, mistake: list[str], says: str) -> None:
    assert says in refused("export", *(m.replace("{}", str(tmp_path)) for m in mistake),
                           *words(hand))  # fmt: skip
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_an_export_can_be_written_to_s3(
    hand: HandRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export, there = ("export", "report", *words(hand)), f"to=s3://{BUCKET}/out/report.csv"
    with s3_server() as environment:
        for key, value in environment.items():
            monkeypatch.setenv(key, value)
        succeed(*export, there)
        succeed(*export, f"to={tmp_path / 'report.csv'}")
        body = client(environment).get_object(Bucket=BUCKET, Key="out/report.csv")["Body"].read()
        assert body == (tmp_path / "report.csv").read_bytes()
        assert refused(*export, there).startswith(f"{there}: exists already")
        told = refused(*export, "to=s3://no-such-bucket/x.csv")
        assert told.startswith("to=s3://no-such-bucket/x.csv: cannot be reached (")


@pytest.mark.slow
def test_what_raters_see_is_the_hypothesis(tmp_path: Path) -> None:
    """With `judged: whole_reply` (family longmemeval) the notes are part of it."""
    said = "1. A pear at 40 francs, a lamp at 12.\nAnswer: 52 francs"
    script = tmp_path / "script.yaml"
    script.write_text(json.dumps({"replies": [{"reply": said}]}))
    corpus = DATA / "longmemeval" / "longmemeval_oracle_16.json"
    warehouse = f"warehouse={tmp_path / 'w'}"
    succeed("run", "corpus=longmemeval", f"corpus.path={corpus}", "family=longmemeval", "limit=1",
            "methods=full_history(reading=con)", "engine=scripted", f"engine.script={script}",
            "rater=none", "cluster=inline", warehouse)  # fmt: skip
    rows = [json.loads(succeed("export", "predictions", warehouse, *form))
            for form in (["format=longmemeval"], ["format=jsonl"])]  # fmt: skip
    assert [rows[0]["hypothesis"], rows[1]["answer"]] == [said, "52 francs"]
    assert "judged" not in rows[1]


# The frontier.

SVG = "{http://www.w3.org/2000/svg}"
EM = Column("em", "EM", 40)
COLUMNS = (Column("words_read", "words read", 80), EM, Column("lr_1", "LR-1", 30))


def of(
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
        (of(("a", 100, 20), ("b", 200, 30), ("c", 300, 25), ("d", 400, 40)), "abd"),
        (of(("d", 400, 40), ("c", 300, 25), ("b", 200, 30), ("a", 100, 20)), "dba"),
        (of(("a", 100, 20), ("b", 100, 30)), "b"),  # as many tokens
        (of(("a", 100, 20), ("b", 200, 20)), "a"),  # as high a score
        (of(("a", 100, 20), ("b", 100, 20)), "ab"),  # both: neither leaves the other behind
        (of(("a", 0, 20), ("b", 5000, 19.9)), "a"),  # a floor that reads nothing takes part
        (of(("a", 100, 0), ("b", 200, 0), ("c", 50, 0)), "c"),  # all failed
        (of(("a", 100, 20), ("b", None, 90), ("c", 200, 30)), "ac"),  # without tokens
        (of(("a", 100, None), ("b", 200, 30)), "b"),  # without a score
        (of(("a", None, 20), ("b", None, 30)), ""),
        (of(("a", 0.1 + 0.2, 20), ("b", 0.3, 0.1 + 0.7), ("c", 0.3, 20)), "ac"),  # equal
    ],
)
def test_the_frontier_is_what_no_other_leaves_behind(rows: tuple[Row, ...], expected: str) -> None:
    drawn = points_of(report_of(*rows), EM)
    assert "".join(point.method for point in drawn if point.on_frontier) == expected


def test_a_mean_over_fewer_answers_is_not_compared_and_groups_have_frontiers() -> None:
    """It is of other questions; more answers without tokens do not count either."""
    few, most = of(("easy", 50, 99), n=7), of(("a", 100, 20), ("b", 200, 30))
    points = points_of(report_of(*few, *most, *of(("theirs", None, 50), n=20)), EM)
    assert [point.competes for point in points] == [False, True, True, False]
    assert [point.on_frontier for point in points] == [False, True, True, False]
    why = of(("a", 100, 20), ("b", 200, 10), by="why")
    who = of(("a", 100, 5), ("b", 200, 10), by="who", n=3)
    points = points_of(report_of(*why, *who), EM)
    found = [(point.method, point.by) for point in points if point.on_frontier]
    assert found == [("a", "why"), ("a", "who"), ("b", "who")]


def test_the_measure_is_one_of_answers_that_has_values() -> None:
    report = report_of(*of(("a", 100, 20)))
    assert [column.measure for column in drawn_columns(report)] == ["em"], "LR-1 has none"
    assert {chosen_column(report, name).measure for name in (None, "em", "EM")} == {"em"}
    for wrong in ("lr_1", "words_read"):
        with pytest.raises(UsageError, match=f"metric={wrong}: no score"):
            chosen_column(report, wrong)


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
    legend = [str(mark.findtext(f"{SVG}text")) for mark in marks]
    assert [text.partition(": ")[0] for text in legend] == [point.method for point in points]
    paths = [[path.attrib["d"] for path in mark.iter(f"{SVG}path")] for mark in marks]
    assert [len(drawn) for drawn in paths] == [2, 3, 2, 1], "the legend's, the point, the bar"
    for drawn, across, up in zip(paths, ("1", "1,000", "10,000"), ("10", "30", "20"), strict=False):
        assert drawn[-2].startswith(f"M{x[across]} {y[up]}m")
    assert paths[1][0] == f"M{x['1,000']} {y['40']}V{y['20']}"
    (steps,) = [p.attrib["d"] for p in svg.iter(f"{SVG}path") if p.get("class") == "frontier"]
    assert steps.endswith(f"H{x['1,000']}V{y['30']}H732")


def test_no_text_of_a_run_is_read_as_svg() -> None:
    name = "<script>alert(1)</script> & \x1b[2J \ud800"
    points = points_of(report_of(*of((name, 100, 5), by=name)), EM)
    svg = frontier_svg(name, name, points, [name])
    assert not [*ElementTree.fromstring(svg).iter(f"{SVG}script")]
    assert "style=" not in svg, "the page's policy would refuse it"


SCORES = {"cheap(k=1)": 20, "cheap(k=2)": 50, "dear": 40, "theirs": 100}  # so many are right, in %
TOKENS = {"cheap(k=1)": 500, "cheap(k=2)": 1500, "dear": 40_000}  # theirs: none


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> ComparedRun:
    """Ten documents, as intervals need them, with a question each. Tokens are in the table of
    scores here, which is a measure like any other; those of an answer are their mean plus or minus
    7."""
    scores: dict[str, Any] = {}
    for method, score in SCORES.items():
        values = {f"{letter}1": 100.0 * (10 * n < score) for n, letter in enumerate("abcdefghij")}
        scores[method] = {"squad_em": values}
        if method in TOKENS:
            tokens = [TOKENS[method] + change for change in [7.0, -7.0] * 5]
            scores[method]["tokens_read"] = dict(zip(values, tokens, strict=True))
    return ComparedRun(tmp_path_factory.mktemp("run"), scores)


def test_the_points_as_csv_and_json(run: ComparedRun, tmp_path: Path) -> None:
    rows = {row["method"]: row for row in rows_of(succeed("export", "frontier", *run.words))}
    assert [*rows] == [*SCORES]
    for method, row in rows.items():
        assert float(row["score"]) == SCORES[method]
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
    tokens = {"a1": 100.0, "a2": 9000.0, "b1": None}
    scores = {"squad_em": {"a1": 50.0, "a2": None, "b1": 0.0}, "tokens_read": tokens}
    parts = {"part_1": {"a2": 4.0}, "part_2": {"a2": 9.0}}
    run = ComparedRun(tmp_path, {"m": {**scores, **parts}})
    for metric, expected in (
        ("squad_em", ("100.0", "25.0", "2", "1")),
        ("geo", ("9000.0", "6.0", "1", "1")),
        ("by group", ("100.0", "25.0", "2", "1")),
    ):
        (row,) = rows_of(succeed("export", "frontier", *run.words, f"metric={metric}"))
        assert (row["tokens"], row["score"], row["n"], row["tokens_n"]) == expected


def test_a_run_without_tokens_or_without_scores(tmp_path: Path) -> None:
    run = ComparedRun(tmp_path)
    run.add("old", {"m": {"squad_em": {"a1": 1.0}}})
    told = refused("export", "frontier", "run=old", *run.words)
    assert told.startswith("run=old: no method has both squad_em and tokens")
    run.add("unscored", {"m": {"tokens_read": {"a1": 1.0}}}, version=2)
    says = refused("export", "frontier", "run=unscored", *run.words)
    assert says == "run=unscored: no answer has a score"
