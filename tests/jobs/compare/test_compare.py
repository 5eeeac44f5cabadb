"""`gistmill compare`: which values are paired, what is printed, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from jobs.compare.compare import RunValues, against_run
from jobs.config.options import ReadOptions
from pipeline.files.storage import as_path
from tests.support.command import succeed
from tests.support.runs.compared_run import ComparedRun
from tests.support.runs.hand_run import HandRun

P, GISTS = "readagent_p(max_pages=2)", "gist_only"


def rows_of(text: str) -> dict[str, dict[str, Any]]:
    return {row["metric"]: {**row, **(row["figures"] or {})} for row in json.loads(text)["rows"]}


def table(text: str) -> list[dict[str, str]]:
    lines = [line for line in text.splitlines() if line.startswith("|")]
    head, _, *body = ([c.strip() for c in line.strip("|").split("|")] for line in lines)
    return [dict(zip(head, cells, strict=True)) for cells in body]


# Worked from hand_numbers.py. LR: readagent_p's m2 is unscored, so m1, l2 and b1 are left: E P N
# against N E N. Recall: m1, m2, t1 and l2 have evidence; documents' sums are -133.3, 0, -100, so of
# the flips -233.3, -33.3, 33.3, 233.3 two are as far from 0.
FIGURES = ("n", "documents", "mean_a", "mean_b", "difference", "p", "wins", "ties", "losses",
           "only_a", "only_b")  # fmt: skip
RECALL = (200 + 100 / 3) / 4
HAND = {
    "lr_1": (3, 3, 100 / 3, 100 / 3, 0, 1, 1, 1, 1, 1, 0),
    "accuracy": (2, 2, 100, 50, 50, 1, 1, 1, 0, 0, 0),
    "evidence_recall": (4, 3, 0, RECALL, -RECALL, 0.5, 0, 1, 3, 0, 0),
}


@pytest.mark.slow
def test_the_hand_run(hand: HandRun) -> None:
    """By default the metrics are those that measure answers; `where` leaves m1 and l2 of lr_1."""
    words = ("compare", GISTS, P, f"warehouse={hand.warehouse}", "--json")
    found = rows_of(succeed(*words, f"metric={','.join(HAND)}"))
    for metric, expected in HAND.items():
        assert [found[metric][name] for name in FIGURES] == pytest.approx(expected), metric
        assert (found[metric]["low"], found[metric]["draws"]) == (None, None)
    assert [*rows_of(succeed(*words))] == ["lr_1", "lr_2", "rouge1_stem", "squad_em", "accuracy"]
    assert rows_of(succeed(*words, "metric=lr_1", "where=question_type = 'why'"))["lr_1"]["n"] == 2


ALL = {f"{letter}{n}": 100.0 for letter in "abcd" for n in (1, 2)}
NONE = dict.fromkeys(ALL, 0.0)


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> ComparedRun:
    """Four documents of two questions. m1 has all right, m2 none, m3 those of three documents."""
    m3 = {name: value if name[0] != "d" else 0.0 for name, value in ALL.items()}
    return ComparedRun(tmp_path_factory.mktemp("four"), {
        "m1(k=1)": {"accuracy": ALL, "squad_em": NONE},
        "m2": {"accuracy": NONE, "squad_em": NONE},
        "m3": {"accuracy": m3, "squad_em": NONE},
    })  # fmt: skip


def test_every_method_against_one_that_is_named(four: ComparedRun) -> None:
    """m1 wins four documents of four against m2, 2 of 16 flips are as far; one of one against m3.
    Holm over both: 0.125 x 2, 1."""
    text = four.compared("m1", "metric=accuracy")
    assert text.startswith("A: m1(k=1)\n\n")
    names = ("B", "A - B", "p", "p (Holm)", "A higher/tied/lower")
    assert [tuple(row[name] for name in names) for row in table(text)] == [
        ("m2", "+100.0", "0.125", "0.25", "8/0/0"), ("m3", "+25.0", "1", "1", "2/6/0"),
    ]  # fmt: skip
    found = json.loads(four.compared("m1", "metric=accuracy", "--json"))
    assert [row["differences"] for row in found["rows"]] == [[], []]


def test_repeats_are_averaged_per_question(tmp_path: Path) -> None:
    """m1 has 100 and 0 for a1, 100 and no value for b1: 50 and 100."""
    made = ComparedRun(tmp_path)
    of_m2 = {"accuracy": {"a1": 50.0, "b1": 0.0}}
    made.add("r", {"m1": {"accuracy": {"a1": 100.0, "b1": 100.0}}, "m2": of_m2},
             repeats=[{"m1": {"accuracy": {"a1": 0.0, "b1": None}}, "m2": of_m2}])  # fmt: skip
    text = made.compared("m1", "m2", "metric=accuracy", "--json")
    row = rows_of(text)["accuracy"]
    assert (row["n"], row["mean_a"], row["mean_b"]) == (2, 75, 25)
    assert (row["wins"], row["ties"]) == (1, 1)
    assert [(of["question_id"], of["a"], of["b"]) for of in row["differences"]] == [("b1", 100, 0)]


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> ComparedRun:
    """a1 is asked in both, b1 asks something else in the second, c1 and d1 are in one alone. m2 and
    m3 are in one run each."""
    made = ComparedRun(tmp_path_factory.mktemp("two"))
    made.add("first", {"m1": {"accuracy": {"a1": 100.0, "b1": 100.0, "c1": 100.0}},
                       "m3": {"accuracy": {"a1": 100.0}}})  # fmt: skip
    made.add("second", {"m1": {"accuracy": {"a1": 30.0, "b1": 0.0, "d1": 0.0}},
                        "m2": {"accuracy": {"a1": 100.0}}},
             asked={"b1": "Something else?"}, version=2)  # fmt: skip
    return made


def test_a_page_compares_the_same_questions_of_the_same_method(two_runs: ComparedRun) -> None:
    warehouse = as_path(two_runs.warehouse.folder)
    options = [ReadOptions(warehouse, run=run) for run in ("first", "second")]
    with RunValues.opened(options[0]) as first, RunValues.opened(options[1]) as second:
        (row,) = against_run(first, second, "accuracy")
        assert against_run(first, second, "rouge1") == []
    figures = row["figures"]
    assert (row["method"], figures["n"], figures["difference"], figures["wins"]) == ("m1", 1, 70, 1)


@pytest.mark.slow
def test_two_runs(two_runs: ComparedRun) -> None:
    for words in (["m1"], ["m1", "m1"], []):
        text = two_runs.compared(*words, "run=first,second", "metric=accuracy")
        assert text.startswith("A: m1 of first\nB: m1 of second\n")
        (row,) = table(text)
        assert (row["n"], row["mean of A"], row["mean of B"]) == ("1", "100.0", "30.0")
        assert "left out: questions with a value of A alone: 1, of B alone: 1\n" in text
        assert "left out: 1 ids that stand for other questions in the other run\n" in text
    text = two_runs.compared("m1", "m2", "run=first,second", "metric=accuracy")
    assert text.startswith("A: m1 of first\nB: m2 of second\n")
    assert "no question on which they differ" in text
    refused = two_runs.refused("m2", "m1", "run=first,second", "metric=accuracy")
    assert "no such method in run first" in refused


def test_columns_that_are_no_mean_over_questions(tmp_path: Path) -> None:
    """A geometric mean of means is compared by its parts, a mean of means by its measure."""
    parts = {"part_1": {"a1": 1.0}, "part_2": {"a1": 2.0}, "squad_em": {"a1": 0.0}}
    made = ComparedRun(tmp_path, {"m1": parts, "m2": parts})
    text = made.compared("m1", "m2", "metric=geo,by group")
    assert [row["metric"] for row in table(text)] == ["part_1", "part_2", "squad_em"]
    assert "geometric is no mean over questions: compared by part_1, part_2\n" in text
    assert "by_group is no mean over questions: compared by squad_em\n" in text
    by_default = [row["metric"] for row in table(made.compared("m1", "m2"))]
    assert by_default == ["squad_em", "part_1", "part_2"]


def test_a_run_that_is_not_complete_says_so(tmp_path: Path) -> None:
    both = {"accuracy": {"a1": 1.0, "b1": 2.0}}
    made = ComparedRun(tmp_path, {"m1": both, "m2": both})
    assert "not done" not in made.compared("m1", "m2", "metric=accuracy")
    sorted((made.warehouse.folder / "tables" / "scores").rglob("*.parquet"))[0].unlink()
    text = made.compared("m1", "m2", "metric=accuracy")
    assert table(text)[0]["n"] == "1"
    assert "run r: 1 inputs are not done; means are over those that are\n" in text


@pytest.mark.slow
def test_with_many_documents_there_is_an_interval_and_flips_are_drawn(tmp_path: Path) -> None:
    """25 documents, all won: p is as small as draws can say."""
    names = [f"{chr(ord('A') + n)}1" for n in range(25)]
    won, lost = ({"squad_em": dict.fromkeys(names, value)} for value in (100.0, 0.0))
    made = ComparedRun(tmp_path, {"m1": won, "m2": lost})
    text = made.compared("m1", "m2")
    (row,) = table(text)
    assert (row["95% interval"], row["p"], row["p (Holm)"]) == ("+100.0..+100.0", *["<0.001"] * 2)
    shown = ", ".join(f"{name} (+100.0)" for name in names[:5])
    assert f"A higher (25): {shown}, and 20 more (--json has all)\n" in text
    assert len(rows_of(made.compared("m1", "m2", "--json"))["squad_em"]["differences"]) == 25


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["m1", "m1(k=1)"], "m1(k=1): A and B are both m1(k=1) of run r; name two methods"),
        (["m1", "run=r,r", "m1"], "m1: A and B are both m1(k=1) of run r; name two methods"),
        (["m", "m2"], "'m': 3 methods of run r; write one of them: m2, m3, m1(k=1)"),
        (["m2", "n3"], "'n3': no such method in run r; nearest: m3, m1(k=1), m2"),
        ([], "name a method: gistmill compare A, or A B; "),
        (["m1", "m2", "m3"], "m3: a third method; compare takes two: gistmill compare A B"),
        (["m1", "m2", "run=r,s"], "run=s: not in "),
        (["m1", "m2", "run=r,r,r"], "run=r,r,r: name one run, or two: run=A_RUN,B_RUN"),
        (["m1", "m2", "run=r,"], "run=r,: name one run, or two: run=A_RUN,B_RUN"),
        (["m1", "m2", "metric=acuracy"], "metric=acuracy: no such metric; nearest: accuracy, "),
        (["m1", "m2", "metric=recall"], "metric=recall: no question has a value of it"),
        (["m1", "m2", "where=false"], "where=false: leaves no question of the run"),
        (["m1", "m2", "by=x"], "'by=x': unknown word; there are warehouse, run, metric, where, "),
        (["m1", "m2", "rater=x"], "rater=x: the run has no model that rates"),
    ],
)
def test_mistakes(four: ComparedRun, words: list[str], says: str) -> None:
    assert four.refused(*words).startswith(says)


def test_no_question_in_common(tmp_path: Path) -> None:
    of_m1, of_m2 = {"accuracy": {"a1": 1.0, "a2": None}}, {"accuracy": {"b1": 2.0}}
    made = ComparedRun(tmp_path, {"m1": of_m1, "m2": of_m2})
    line = made.refused("m1", "m2", "metric=accuracy")
    assert line.startswith("no two methods have a value of accuracy on one question")
