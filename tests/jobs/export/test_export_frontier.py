"""`gistmill export frontier`: its files, by hand and of a run by the real command, and mistakes."""

import csv
import io
import json
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from tests.support.command import gistmill, refused, sql, succeed
from tests.support.runs.compared_run import ComparedRun
from tests.support.runs.hand_run import HandRun

DOCUMENTS = "abcdefghij"  # ten, as intervals need them
EM = {
    "cheap(k=1)": [0, 0, 0, 0, 0, 0, 0, 0, 100, 100],
    "cheap(k=2)": [0, 0, 0, 0, 0, 100, 100, 100, 100, 100],
    "dear": [0, 0, 0, 0, 0, 0, 100, 100, 100, 100],
    "theirs": [100] * 10,
}
TOKENS = {"cheap(k=1)": 500, "cheap(k=2)": 1500, "dear": 40_000}  # on average; theirs: none


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> ComparedRun:
    """Tokens are in the table of scores here, which is a measure like any other. Those of an
    answer are their mean plus or minus 7."""
    run = ComparedRun(tmp_path_factory.mktemp("made"))
    scores: dict[str, Any] = {}
    for method, values in EM.items():
        questions = [f"{letter}1" for letter in DOCUMENTS]
        scores[method] = {"squad_em": dict(zip(questions, values, strict=True))}
        if method in TOKENS:
            sign = [7.0, -7.0] * 5
            tokens = [TOKENS[method] + one for one in sign]
            scores[method]["tokens_read"] = dict(zip(questions, tokens, strict=True))
    run.add("r", scores)
    return run


def test_the_points_as_csv_and_json(made: ComparedRun, tmp_path: Path) -> None:
    out = succeed("export", "frontier", *made.words)
    rows = {row["method"]: row for row in csv.DictReader(io.StringIO(out))}
    assert [*rows] == [*EM]
    for method, row in rows.items():
        assert float(row["score"]) == fmean(EM[method])
        assert row["tokens"] == (f"{TOKENS[method]}.0" if method in TOKENS else "")
        assert (row["n"], row["by"]) == ("10", "")
        assert float(row["low"]) <= float(row["score"]) <= float(row["high"])
    assert [row["on_frontier"] for row in rows.values()] == ["1", "1", "0", "0"]
    assert [row["competes"] for row in rows.values()] == ["1", "1", "1", "0"]
    file = tmp_path / "points.json"
    assert succeed("export", "frontier", *made.words, f"to={file}") == f"4 rows in {file}\n"
    found = json.loads(file.read_text())
    assert (found["run"], found["metric"]) == ("r", "squad_em")
    assert [point["method"] for point in found["points"] if point["on_frontier"]] == [*EM][:2]
    assert found["points"][3]["tokens"] is None


@pytest.mark.slow
def test_tokens_are_of_the_answers_that_have_the_score(tmp_path: Path) -> None:
    """Of three answers one has no score, and the context of another was not counted."""
    made = ComparedRun(tmp_path)
    tokens = {"a1": 100.0, "a2": 9000.0, "b1": None}
    made.add("r", {"m": {"squad_em": {"a1": 50.0, "a2": None, "b1": 0.0}, "tokens_read": tokens,
                         "part_1": {"a2": 4.0}, "part_2": {"a2": 9.0}}})  # fmt: skip
    for metric, expected in (
        ("squad_em", ("100.0", "25.0", "2", "1")),
        ("geo", ("9000.0", "6.0", "1", "1")),
        ("by group", ("100.0", "25.0", "2", "1")),
    ):
        out = succeed("export", "frontier", *made.words, f"metric={metric}")
        (row,) = csv.DictReader(io.StringIO(out))
        assert (row["tokens"], row["score"], row["n"], row["tokens_n"]) == expected


def test_groups_and_questions(made: ComparedRun) -> None:
    """Of documents a to e all answers are wrong, so the fewest tokens are best; of i and j all are
    right."""
    by = "by=case when document_id <= 'e' then 'first' else 'last' end"
    rows = csv.DictReader(io.StringIO(succeed("export", "frontier", *made.words, by)))
    best = [(row["method"], row["by"]) for row in rows if row["on_frontier"] == "1"]
    assert best == [("cheap(k=1)", "first"), ("cheap(k=1)", "last"), ("cheap(k=2)", "last")]
    out = succeed("export", "frontier", *made.words, "where=document_id > 'h'")
    rows = csv.DictReader(io.StringIO(out))
    assert [(row["method"], row["n"]) for row in rows if row["on_frontier"] == "1"] == [
        ("cheap(k=1)", "2")
    ]


@pytest.mark.parametrize(
    ("mistake", "says"),
    [
        (["to={}/a.png"], "a.png: write a file that ends in .svg, .csv or .json"),
        (["metric=nosuch"], "metric=nosuch: no score of run=r; there are squad_em"),
        (["where=false"], "where=false: leaves no question of the run"),
        (["by=nosuch"], "Binder Error"),
        (["method=dear"], "'method=dear': unknown option; there are warehouse, run, metric"),
    ],
)
def test_mistakes(made: ComparedRun, tmp_path: Path, mistake: list[str], says: str) -> None:
    words = [word.replace("{}", str(tmp_path)) for word in mistake]
    assert says in refused("export", "frontier", *made.words, *words)
    assert list(tmp_path.iterdir()) == []


def test_a_run_without_tokens_or_without_scores(tmp_path: Path) -> None:
    made = ComparedRun(tmp_path)
    made.add("old", {"m": {"squad_em": {"a1": 1.0}}})
    assert refused("export", "frontier", "run=old", *made.words) == (
        "run=old: no method has both squad_em and tokens of its contexts; imported answers have no "
        "tokens, nor have those of gistmill 0.2"
    )
    made.add("unscored", {"m": {"tokens_read": {"a1": 1.0}}}, version=2)
    says = refused("export", "frontier", "run=unscored", *made.words)
    assert says == "run=unscored: no answer has a score"


@pytest.mark.slow
def test_tokens_are_those_of_the_answers(hand: HandRun) -> None:
    """Words, for the scripted engine. Of the questions with options none has a squad_em, and an
    answer without a context is not counted."""
    words = [f"warehouse={hand.warehouse}", "run=hand"]
    done = gistmill("export", "frontier", "metric=squad_em", *words)
    rows = {row["method"]: row for row in csv.DictReader(io.StringIO(done.stdout))}
    answers = sql(
        hand.warehouse,
        "select method, avg(num_context_words) as words, count(num_context_words) as n from answers"
        " where question_id in ('m1', 'm2', 'l2', 'b1') group by method",
        "run=hand",
    )
    assert len(rows) == len(answers) == 6
    for answer in answers:
        row = rows[answer["method"]]
        assert float(row["tokens"]) == pytest.approx(answer["words"])
        assert (int(row["tokens_n"]), int(row["n"])) == (answer["n"], 4)
