"""Paired statistics and kappas, against scipy and scikit-learn; tests/jobs/compare has a case by
hand. Intervals of means. Which rows of a report are the best, and each against a baseline."""

import json
import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from jobs.people.labels import kappa
from jobs.statistics.statistics import (
    DRAWS,
    LEAST_DOCUMENTS,
    MOST_ENUMERATED,
    Mean,
    MethodGroup,
    Pair,
    best_of,
    holm,
    interval,
    paired,
    pairs_of,
    quick_sign_flip,
    sign_flip,
)
from pipeline.work.stage import Column
from tests.support.command import refused, succeed
from tests.support.runs.compared_run import ComparedRun, Values


def scipys(a: Any, b: Any, most: float = np.inf) -> float:
    """scipy's test of pairs, a pair per document."""
    found = stats.permutation_test(
        (a, b), lambda a, b, axis: (a - b).mean(axis=axis), permutation_type="samples",
        n_resamples=most, vectorized=True, rng=np.random.default_rng(5),
    )  # fmt: skip
    return float(found.pvalue)


@pytest.mark.parametrize("seed", range(6))
def test_exact_p_values_are_scipys(seed: int) -> None:
    """Right and wrong answers with many equal totals, and graded ones; a question a document."""
    draw = np.random.default_rng(seed)
    size = 2 + 2 * seed
    for a, b in (
        (100.0 * draw.integers(0, 2, size), 100.0 * draw.integers(0, 2, size)),
        (100 * draw.random(size), 100 * draw.random(size)),
    ):
        found = paired(a.tolist(), b.tolist(), [f"d{n}" for n in range(size)])
        assert found.draws is None
        assert found.p == pytest.approx(scipys(a, b), abs=1e-12)


def test_drawn_p_values_are_near_scipys_and_always_the_same() -> None:
    draw = np.random.default_rng(8)
    a = 100 * draw.random(60)
    b = a + draw.normal(3, 12, 60)
    documents = [f"d{n}" for n in range(60)]
    found = paired(a.tolist(), b.tolist(), documents)
    assert found.draws == DRAWS and found == paired(a.tolist(), b.tolist(), documents)
    assert 0.01 < found.p < 0.2
    assert found.p == pytest.approx(scipys(a, b, most=50_000), abs=5 * (0.1 / DRAWS) ** 0.5)
    # All of 60 documents won: chance has 2 in 2**60, and the one found is counted in.
    assert sign_flip([1.0] * 60) == (1 / (1 + DRAWS), DRAWS)


def test_documents_that_do_not_differ_take_no_part_in_the_test() -> None:
    """With 20 that do there are 2**20 flips, however many others stand beside them. Rounding is no
    difference: 0.1 + 0.2 is not 0.3 in floats; a total of 0 must not look like one beside 0."""
    moving = [float(n) for n in range(1, MOST_ENUMERATED + 1)]
    p, draws = sign_flip([*moving, *[0.0] * 500])
    assert (p, draws) == (2 / 2**MOST_ENUMERATED, None)
    assert sign_flip([*moving, 1.0])[1] == DRAWS
    assert sign_flip([0.1, 0.2, -0.3]) == (1, None)
    won = [n / 10 for n in range(1, 9)]  # in another order their sum has another last digit
    assert sign_flip(won) == (2 / 2**8, None)
    found = paired([0.1 + 0.2, 200 / 3], [0.3, 100 - 100 / 3], ["d", "e"])
    assert (found.ties, found.p, found.difference) == (2, 1, 0)


def test_the_interval_of_pairs_is_scipys() -> None:
    """A question a document: the same resampling, seed and percentiles."""
    draw = np.random.default_rng(4)
    a, b = 100 * draw.random(30), 100 * draw.random(30)
    found = paired(a.tolist(), b.tolist(), [f"d{n:02}" for n in range(30)])
    expected = stats.bootstrap(
        (a, b), lambda a, b, axis: (a - b).mean(axis=axis), paired=True, n_resamples=2000,
        method="percentile", rng=np.random.default_rng(0), vectorized=True,
    ).confidence_interval  # fmt: skip
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize(
    ("p_values", "adjusted"),
    [
        # Sorted: 0.005 x 4 = 0.02, 0.01 x 3 = 0.03, 0.03 x 2 = 0.06, 0.04 x 1, raised to 0.06.
        ([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02]),
        ([0.2, 0.6, 0.5], [0.6, 1, 1]),  # 0.2 x 3, 0.5 x 2, 0.6 x 1 raised to 1
        ([0.5, 0.6], [1, 1]),
        ([], []),
    ],
)
def test_holm_by_hand(p_values: list[float], adjusted: list[float]) -> None:
    assert holm(p_values) == pytest.approx(adjusted)


L = ("yes", "partially", "no")


@pytest.mark.parametrize(
    ("rows", "order", "expected"),
    [
        ([[20, 5], [10, 15]], None, 0.4),  # (0.7 - 0.5) / 0.5; 0.5 = 0.5 x 0.6 + 0.5 x 0.4
        ([[9, 0], [0, 0]], None, None),  # one label alone
        ([[0, 0], [0, 0]], None, None),
        # scikit-learn 1.9.1, cohen_kappa_score, then with weights="linear"
        ([[1, 4, 7], [6, 2, 5], [4, 7, 3]], None, -0.274257),
        ([[1, 4, 7], [6, 2, 5], [4, 7, 3]], L, -0.2767857),
        ([[20, 5, 2], [6, 12, 4], [1, 3, 17]], L, 0.6212804),
        ([[30, 0, 0], [0, 0, 0], [0, 0, 0]], L, None),
    ],
)  # fmt: skip
def test_kappa(
    rows: list[list[int]], order: tuple[str, ...] | None, expected: float | None
) -> None:
    confusion = {(L[a], L[b]): n for a, row in enumerate(rows) for b, n in enumerate(row)}
    found = kappa(confusion, order)
    assert found == (None if expected is None else pytest.approx(expected, abs=1e-6))


# 12 documents of 1 to 12 questions; per document the sum of 0-100 scores and their number.
COUNTS = list(range(1, 13))
SUMS = [100.0 * (7 * n % 5) * n / 8 for n in COUNTS]


def test_the_interval_is_that_of_resampled_documents() -> None:
    """Of documents drawn with replacement the 2.5th and 97.5th percentile of the mean; nothing is
    said below ten."""
    draw, means = random.Random(11), []
    for _ in range(20_000):
        chosen = [draw.randrange(len(SUMS)) for _ in SUMS]
        means.append(sum(SUMS[i] for i in chosen) / sum(COUNTS[i] for i in chosen))
    means.sort()
    low, high = means[500], means[19_500]
    assert interval(SUMS, COUNTS) == pytest.approx((low, high), abs=0.06 * (high - low))
    assert LEAST_DOCUMENTS == 10
    assert interval(SUMS[:9], COUNTS[:9]) is None and interval([], []) is None
    assert interval(SUMS[:10], COUNTS[:10]) is not None


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
    better = Column("em", "em", 40, more_is_better=True)
    geometric = replace(better, measure="geo", geometric_mean_of=("em", "length"))
    by_type = replace(better, mean_of_means=("em", "question_type"))
    columns = (better, Column("length", "length", 90), geometric)
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


def values(of: str, right: str = "") -> Values:
    """Two questions of each document of `of`: 100 where the document is in `right`, else 0."""
    return {f"{d}{n}": 100.0 * (d in right) for d in of for n in (1, 2)}


def missed(*of_questions: float | None) -> Values:
    """These values of the first, second and third question of each document."""
    return {f"{d}{n}": value for d in LETTERS for n, value in enumerate(of_questions, 1)}


RIGHT = values(LETTERS, LETTERS)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("methods", "expected"),
    [
        # Of 12 documents near has two less: two of the four flips of its sums are as far, p = 0.5.
        # bad has none right: 2 of 4096, by Holm twice that.
        ({"near": values(LETTERS, LETTERS[:10]), "best": RIGHT, "bad": values(LETTERS)},
         ["near", "best"]),
        # bad goes first of three tests: 6 / 4096; the next p is 2 / 2**6 = 0.03, twice that.
        ({"best": RIGHT, "half": values(LETTERS, LETTERS[:6]), "bad": values(LETTERS),
          "worse": values(LETTERS)}, ["best"]),
        # Both miss one question a document, not the same; what both have is equal.
        ({"first": missed(0, 100, None), "second": missed(0, None, 0)}, []),
        # Of the second question both are known now: the first is better in all 12 documents.
        ({"first": missed(0, 100, None), "second": missed(0, 0, None)}, ["first"]),
        # Of five documents p is 2 / 32 at least.
        ({"best": values("abcde", "abcde"), "bad": values("abcde")}, []),
        ({"best": values("abcdef", "abcdef"), "bad": values("abcdef")}, ["best"]),
    ],
)  # fmt: skip
def test_marks_of_a_run(tmp_path: Path, methods: dict[str, Values], expected: list[str]) -> None:
    made = ComparedRun(tmp_path, {name: {"squad_em": of} for name, of in methods.items()})
    rows = json.loads(succeed("report", *made.words, "--json"))["rows"]
    assert [row["method"] for row in rows if row["best"]] == expected
    line = "No best is marked: in no column does even the lowest mean differ significantly"
    assert (line in succeed("report", *made.words)) == (not expected)


@pytest.mark.slow
def test_every_row_against_a_baseline(tmp_path: Path) -> None:
    parts = {"part_1": values(LETTERS), "part_2": values(LETTERS)}  # of another column
    made = ComparedRun(tmp_path, {
        "best": {"squad_em": RIGHT, **parts},
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
    assert refused(*words[:-1], "baseline=worst").startswith("'worst': no such method in run r")
    assert refused(*words, "--corpus").startswith("baseline: ")
