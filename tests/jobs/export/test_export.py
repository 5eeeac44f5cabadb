"""`gistmill export`: answers, tables and views as files of other programs."""

import csv
import io
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from upath import UPath

from jobs.config.options import ReadOptions
from jobs.export.export_run import TABLE_FORMATS, escaped
from jobs.output.print_tables import csv_text
from jobs.report.report import Report, Row, make_report
from jobs.statistics.means import Mean
from pipeline.work.stage import Column
from stages.read.imported_answers import read_predictions
from tests.support.clusters.s3_server import BUCKET, client, s3_server
from tests.support.command import DATA, gistmill, refused, sql, succeed
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


def test_latex_escapes_what_it_would_obey() -> None:
    assert escaped("50% \\input{x} a_b & $1 #2") == (
        r"50\% \textbackslash{}input\{x\} a\_b \& \$1 \#2"
    )


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


def test_the_best_are_bold() -> None:
    """c is over fewer questions; d has no value. Of e's ten answers seven have no problem."""
    rows = of_values(("a*", 41.04, 10), ("b*", 41.01, 10), ("c", 90.0, 4), ("d", None, 10))
    for numbers in ((7.0, 10, 10.0, 7), (7.0, 9, 10.0, 7), (0.0, 10, None, 0)):
        rows.append(Row("e", None, {"lr_1": Mean(*numbers)}, {"n": 10}))
    assert latex(rows) == [
        r"a & 10 & \textbf{41.0}", r"b & 10 & \textbf{41.0}", r"c & 10 & 90.0 ($n$=4)",
        "d & 10 & --", "e & 10 & 7.0 (7 answered)", "e & 10 & 7.0 ($n$=9, 7 answered)",
        "e & 10 & 0.0 (0 answered)",
    ]  # fmt: skip
    groups = [
        *of_values(("a", 1.0, 10), ("b*", 2.0, 10), by="x_1"),
        *of_values(("a", 4.0, 10), by="y"),
    ]
    assert latex(groups) == [
        r"a & x\_1 & 10 & 1.0", r"b & x\_1 & 10 & \textbf{2.0}", r"a & y & 10 & 4.0",
    ]  # fmt: skip


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
def test_columns_are_chosen_in_every_format(hand: HandRun) -> None:
    chosen = words(hand, "columns=recall,LR-1,tokens")
    bm25 = ("export", "report", *chosen, "method=bm25")
    names = [f"{name}{n}" for name in ("evidence_recall", "lr_1", "tokens") for n in ("", "_n")]
    assert [*rows_of(succeed(*bm25))[0]] == ["method", "n", *names]
    head = succeed(*bm25, "format=markdown").splitlines()[2]
    assert re.findall(r"[^ |]+", head) == ["Method", "n", "Recall", "LR-1", "Tokens"]
    typed = succeed("report", *chosen)
    assert re.search(r"^\| method +\| +n \| +recall.* \| +LR-1.* \| +tokens \|$", typed, re.M)
    assert "unscored" not in typed.split("\n\n")[3], "no second table of costs"
    printed = succeed("report", *words(hand, "names=paper", "columns=lr_1"))
    assert "| ReadAgent-P " in printed and "readagent_p" not in printed.split("\n\n")[2]


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


def test_a_spreadsheet_takes_no_cell_for_a_formula() -> None:
    values = ["=1+1", "+1", "-1", "@x", "\tx", " =1", "＝1", "fine", "a=b", -1.5, None]
    rows = rows_of(csv_text([{"=a": value} for value in values], ["=a"]))
    assert [row["'=a"] for row in rows[:-1]] == [
        "'=1+1", "'+1", "'-1", "'@x", "'\tx", "' =1", "'＝1", "fine", "a=b", "-1.5",
    ]  # fmt: skip
    assert "\x1b" not in csv_text([{"a": "\x1b[2J"}], ["a"])


@pytest.mark.slow
def test_a_view_as_parquet(hand: HandRun, tmp_path: Path) -> None:
    for view in ("answers", "all_answers", "measures", "lr", "questions", "people", "steps"):
        file = tmp_path / f"{view}.parquet"
        told = json.loads(succeed("export", "view", view, *words(hand), f"to={file}", "--json"))
        expected = sql(hand.warehouse, f"select count(*) as n from {view}", "run=hand")
        assert told == {"to": str(file), "rows": expected[0]["n"]}
        assert pq.read_table(file).num_rows == expected[0]["n"]
    rows = pq.read_table(tmp_path / "answers.parquet").to_pylist()
    answers = {row["question_id"]: row["answer"] for row in rows if row["method"] == BM25}
    assert answers == given(BM25)
    assert list(tmp_path.glob(".*")) == []
    some = ["where=method='constant'", f"to={tmp_path / 'some.parquet'}", "--json"]
    assert json.loads(succeed("export", "view", "answers", *words(hand), *some))["rows"] == 6


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
        (["report", "format=markdown", "label=a"], "label= is for format=latex; leave it out"),
        (["report", "format=latex", "names={}/n.yaml"], "n.yaml: cannot be reached (No such f"),
        (["report", "format=latex", "label=a}b"], "label=a}b: write letters, digits and any of"),
        (["report", "method=nosuch"], "method=nosuch: not in the run; nearest: "),
        (["report", "to={}"], ": no file but a folder or a device; name a file"),
        (["view", "answers"], "a view is written as Parquet, which is no text; add to=FILE"),
        (["view", "anwsers", "to={}/a"], "anwsers: no such view; nearest: answers, all_answers"),
        (["view", "read_csv('x')", "to={}/a"], "read_csv('x'): no such view; nearest: "),
        (["view", "answers", "to={}/a", "where=nosuch > 1"], "sql: Binder Error"),
    ],
)  # fmt: skip
def test_mistakes(hand: HandRun, tmp_path: Path, mistake: list[str], says: str) -> None:
    assert says in refused("export", *(m.replace("{}", str(tmp_path)) for m in mistake),
                           *words(hand))  # fmt: skip
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_everything_can_be_written_to_s3(
    hand: HandRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = {
        "report.csv": ("export", "report", "format=csv"),
        "scores.parquet": ("export", "view", "scores"),
        "sheet.csv": ("rate", "sheet", "n=2", "seed=1"),
    }
    with s3_server() as environment:
        for key, value in environment.items():
            monkeypatch.setenv(key, value)
        for name, verb in wanted.items():
            there = f"to=s3://{BUCKET}/out/{name}"
            succeed(*verb, *words(hand), there)
            assert refused(*verb, *words(hand), there).startswith(f"{there}: exists already")
            succeed(*verb, *words(hand), f"to={tmp_path / name}")
            body = client(environment).get_object(Bucket=BUCKET, Key=f"out/{name}")["Body"].read()
            contents = [body, (tmp_path / name).read_bytes()]
            if name.endswith("parquet"):  # rows in any order
                tables = [pq.read_table(io.BytesIO(content)).to_pylist() for content in contents]
                contents = [sorted(map(str, rows)) for rows in tables]
            assert contents[0] == contents[1]
        succeed(*verb, *words(hand), there, "--force")
        for verb in wanted.values():
            told = refused(*verb, *words(hand), "to=s3://no-such-bucket/x.csv")
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
