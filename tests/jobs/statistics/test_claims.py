"""Which rows of a report are marked as the best, and the lines beside that."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from jobs.statistics.means import Mean, MethodGroup
from jobs.statistics.paired_test import Pair, best_of, pairs_of, quick_sign_flip, sign_flip
from pipeline.work.stage import Column
from tests.support.command import refused, succeed
from tests.support.runs.compared_run import ComparedRun, Values

BETTER = Column("em", "em", 40, more_is_better=True)
LETTERS = "abcdefghijkl"


def mean(value: float | None, n: int) -> Mean:
    return Mean(value, n, value, n)


def test_what_is_tested() -> None:
    """The leader against each other method over as many answers, by group; only of means over
    answers of which more is better."""
    means: dict[MethodGroup, dict[str, Mean]] = {
        ("a", "x"): {"em": mean(1, 9), "length": mean(3, 9), "geo": mean(3, 9)},
        ("b", "x"): {"em": mean(2, 9), "length": mean(4, 9), "geo": mean(3, 9)},
        ("few", "x"): {"em": mean(9, 8)},
        ("none", "x"): {"em": mean(None, 9)},
        ("c", "x"): {"em": mean(0, 9)},
        ("a", "y"): {"em": mean(1, 4)},
        ("c", "y"): {},
    }
    geometric = Column("geo", "geo", 41, more_is_better=True, geometric_mean_of=("em", "length"))
    by_type = Column("em", "em", 42, more_is_better=True, mean_of_means=("em", "question_type"))
    columns = (BETTER, Column("length", "length", 90), geometric)
    assert pairs_of(means, columns) == [Pair("x", "em", "b", "a"), Pair("x", "em", "b", "c")]
    assert pairs_of(means, (by_type,)) == []


def test_the_leader_is_marked_with_all_down_to_the_last_that_it_does_not_beat() -> None:
    def marks(*p_values: float) -> dict[MethodGroup, list[str]]:
        pairs = (Pair(None, "em", "a", method) for method in "bcd")
        return best_of(dict(zip(pairs, p_values, strict=True)))

    assert marks(0.01, 0.04, 0.001) == {("a", None): ["em"]}
    assert marks(0.05, 0.04, 0.01) == {(name, None): ["em"] for name in "ab"}
    assert marks(0.04, 0.05, 0.01) == {(name, None): ["em"] for name in "abc"}, "b is above c"
    assert marks(0.01, 0.01, 0.05) == {}, "it cannot be told from the last"


@pytest.mark.parametrize("documents", [6, 14, 15, 20, 60, 400])
def test_of_many_the_normal_distribution_stands_in(documents: int) -> None:
    """Near the p-values of `compare`, by all flips of 20 documents and by drawn flips of more. Up
    to 14 documents are flipped in all ways here, too."""
    sums = np.random.default_rng(documents).normal(0, 30, documents)
    sums += 2 * 30 / math.sqrt(documents) - sums.mean()
    exact, _ = sign_flip(sums)
    assert 0.01 < exact < 0.3
    quick = quick_sign_flip(sums)
    assert quick == exact if documents <= 14 else quick == pytest.approx(exact, abs=0.012)
    assert quick_sign_flip(-sums) == quick


def values(of: str, *right: str) -> Values:
    """Two questions of each document of `of`: 100 where the document is in `right`, else 0."""
    right_ones = "".join(right)
    return {f"{d}{n}": 100.0 * (d in right_ones) for d in of for n in (1, 2)}


def reported(folder: Path, methods: dict[str, dict[str, Values]]) -> ComparedRun:
    made = ComparedRun(folder)
    made.add("r", methods)
    return made


def marked(made: ComparedRun, *words: str) -> list[str]:
    found = json.loads(succeed("report", *made.words, *words, "--json"))
    return [row["method"] for row in found["rows"] if row["best"]]


@pytest.mark.slow
def test_marks_of_a_run(tmp_path: Path) -> None:
    """Of 12 documents best has all right and near 10: two of the four flips of its two sums are as
    far, p = 0.5. bad has none right: 2 of 4096, by Holm twice that."""
    made = reported(tmp_path, {
        "near": {"squad_em": values(LETTERS, LETTERS[:10])},
        "best": {"squad_em": values(LETTERS, LETTERS)},
        "bad": {"squad_em": values(LETTERS)},
    })  # fmt: skip
    assert marked(made) == ["near", "best"]
    assert "No best is marked" not in succeed("report", *made.words)
    # bad goes first of three tests: 6 / 4096; the next p is 2 / 2**6 = 0.03, twice that.
    more = {"half": {"squad_em": values(LETTERS, LETTERS[:6])}}
    other = reported(tmp_path / "more", {
        "best": {"squad_em": values(LETTERS, LETTERS)}, **more,
        "bad": {"squad_em": values(LETTERS)}, "worse": {"squad_em": values(LETTERS)},
    })  # fmt: skip
    assert marked(other) == ["best"]


@pytest.mark.slow
def test_questions_that_only_one_method_has_a_value_of_tell_nothing(tmp_path: Path) -> None:
    """Both miss one question a document, not the same; what both have is equal."""
    first = {f"{d}{n}": value for d in LETTERS for n, value in ((1, 0.0), (2, 100.0), (3, None))}
    second = {f"{d}{n}": value for d in LETTERS for n, value in ((1, 0.0), (2, None), (3, 0.0))}
    made = reported(tmp_path, {"first": {"squad_em": first}, "second": {"squad_em": second}})
    assert marked(made) == []
    # Of the second question both are known now: the first method is better in all 12 documents.
    second |= {f"{d}2": 0.0 for d in LETTERS} | {f"{d}3": None for d in LETTERS}
    methods: dict[str, dict[str, Values]] = {
        "first": {"squad_em": first},
        "second": {"squad_em": second},
    }
    assert marked(reported(tmp_path / "both", methods)) == ["first"]


@pytest.mark.slow
def test_too_few_documents_to_tell(tmp_path: Path) -> None:
    """Of five documents p is 2 / 32 at least."""
    made = reported(tmp_path, {
        "best": {"squad_em": values("abcde", "abcde")}, "bad": {"squad_em": values("abcde")},
    })  # fmt: skip
    assert marked(made) == []
    line = "No best is marked: in no column does even the lowest mean differ significantly"
    assert line in succeed("report", *made.words)
    six = reported(tmp_path / "six", {
        "best": {"squad_em": values("abcdef", "abcdef")}, "bad": {"squad_em": values("abcdef")},
    })  # fmt: skip
    assert marked(six) == ["best"]


@pytest.mark.slow
def test_every_row_against_a_baseline(tmp_path: Path) -> None:
    parts = {"part_1": values(LETTERS), "part_2": values(LETTERS)}  # of another column
    made = reported(tmp_path, {
        "best": {"squad_em": values(LETTERS, LETTERS), **parts},
        "some": {"squad_em": values(LETTERS, LETTERS[:3])},
        "bad": {"squad_em": values(LETTERS), **parts},
    })  # fmt: skip
    words = ("report", *made.words, "baseline=bad")
    found = json.loads(succeed(*words, "columns=squad_em", "--json"))["baseline"]["rows"]
    assert {(row["metric"], row["b"]["method"]) for row in found} == {("squad_em", "bad")}
    rows = {row["a"]["method"]: row["figures"] | {"p_holm": row["p_holm"]} for row in found}
    best, some = rows["best"], rows["some"]
    assert (best["difference"], best["p"], best["p_holm"]) == (100, 2 / 2**12, 4 / 2**12)
    assert (some["difference"], some["p"], some["p_holm"]) == (25, 2 / 2**3, 2 / 2**3)
    assert 0 <= some["low"] < 25 < some["high"]
    assert "| squad_em" in succeed(*words).split("## against the baseline")[1]
    groups = json.loads(succeed(*words, "by=document_id < 'd'", "columns=squad_em", "--json"))
    of_some = {row["by"]: row["figures"]["difference"] for row in groups["baseline"]["rows"]
               if row["a"]["method"] == "some"}  # fmt: skip
    assert of_some == {"true": 100, "false": 0}
    assert "'worst': no such method in run r; nearest: " in refused(
        "report", *made.words, "baseline=worst"
    )
    assert refused(*words, "--corpus").startswith("baseline: ")
    assert "leave names= out" in refused(*words, "names=paper")
