"""The report of a run whose every number is worked by hand: see hand_numbers.py."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest

from tests.support.command import succeed, without_identity
from tests.support.runs.hand_numbers import (
    ORDER,
    TYPES,
    WORKED,
    Values,
    Worked,
    mean,
    measures,
    numbers,
    total,
)
from tests.support.runs.hand_run import HandRun

ALL = range(len(ORDER))
READ_PAGES = {"gist_only", "readagent_p(max_pages=2)", "bm25(top_k=1)"}
OTHER_COSTS = {"memory", "judging"}
QUALITY = ("lr_1", "lr_2", "rouge1_stem", "squad_em", "accuracy")
HEADINGS = (
    "method", "n", "LR-1", "LR-2", "rouge1_stem", "squad_em", "accuracy", "CR", "# LU", "recall",
    "any-hit", "words read", "fallback %", "length",
)  # fmt: skip


def report(hand: HandRun, *words: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(
        succeed("report", f"warehouse={hand.warehouse}", *words, "--json")
    )
    return content


def is_unrated(measure: str, worked: Worked, chosen: Sequence[int]) -> bool:
    """Whether the rater scored none of those it was asked about: failed answers count 0 beside
    others, but alone they are no verdict."""
    letters = worked.lr.split()
    asked = [i for i in chosen if letters[i] != "-" and worked.problems[i] is None]
    return measure.startswith("lr_") and {letters[i] for i in asked} == {"U"}


def check_rows(rows: Sequence[dict[str, Any]], chosen: Sequence[int]) -> None:
    """Every mean and count of the methods, over the questions at the positions `chosen`."""
    assert [row["method"] for row in rows] == list(WORKED)
    for row in rows:
        worked = WORKED[row["method"]]
        for measure, values in measures(worked).items():
            expected = None if is_unrated(measure, worked, chosen) else mean(values, chosen)
            found = row["means"].get(measure, {"mean": None})
            assert found["mean"] == pytest.approx(expected), (row["method"], measure)
            if expected is not None:
                assert found["n"] == sum(values[i] is not None for i in chosen)
        found = {k: v for k, v in row["counts"].items() if k.rpartition("_")[0] not in OTHER_COSTS}
        assert found == counts(row["method"], worked, chosen)
        # 2 calls of pagination and a gist of each of ten pages, whatever the questions.
        rests_on = 12 if "gist" in row["method"] or "readagent" in row["method"] else 2
        on_pages = row["method"] in READ_PAGES
        assert row["counts"]["memory_calls"] == (rests_on if on_pages else 0)


def counts(method: str, worked: Worked, chosen: Sequence[int]) -> dict[str, float | None]:
    """`fallback`: of the two pages asked for one fell back, whatever the questions."""
    letters = [worked.lr.split()[i] for i in chosen]
    found: dict[str, float | None] = {
        "n": len(chosen),
        "answered": sum(worked.problems[i] is None for i in chosen),
        "calls": total(worked.calls, chosen),
        "tokens": total(worked.tokens, chosen),
    }
    if set(letters) != {"-"}:
        found["unscored"] = letters.count("U")
    return {**found, "fallback": 50.0} if method in READ_PAGES else found


def test_the_run_has_more_problems_than_allowed(hand: HandRun) -> None:
    assert hand.code == 3, hand.err
    assert "Traceback" not in hand.err
    assert "bad_input: documents.jsonl:4: " in hand.err
    assert "bad_input: questions.jsonl:4: " in hand.err
    assert "paginate: 50.0% of the page ends" in hand.err


def test_means_and_counts_are_those_worked_by_hand(hand: HandRun) -> None:
    found = report(hand)
    assert found["measures"] == list(QUALITY)
    assert all(row["by"] is None for row in found["rows"])
    check_rows(found["rows"], ALL)


def test_answered_only_means_stand_beside_the_headline(hand: HandRun) -> None:
    for row in report(hand)["rows"]:
        worked = WORKED[row["method"]]
        unscored = [letter == "U" for letter in worked.lr.split()]
        for measure in QUALITY:
            answered = [
                i for i in ALL
                if worked.problems[i] is None and not (measure.startswith("lr_") and unscored[i])
            ]  # fmt: skip
            values = measures(worked)[measure]
            found = row["means"][measure]
            assert found["answered_mean"] == pytest.approx(mean(values, answered))
            assert found["answered_n"] == sum(values[i] is not None for i in answered)
            assert (found["low"], found["high"], found["sd"]) == (None, None, None)
        # Evidence was read or not whatever became of the answer, once there was a context.
        read = [i for i, words in enumerate(numbers(worked.words_read)) if words is not None]
        recall = row["means"]["evidence_recall"]
        assert recall["answered_mean"] == pytest.approx(mean(worked.recall, read))


def test_memory_and_foot(hand: HandRun) -> None:
    found = report(hand)
    # 60 + 32 + 150 words on 3 + 2 + 5 pages; gists of 12 + 8 + 10 words.
    assert found["memory"] == {
        "documents": 3,
        "words": 242,
        "pages": 10,
        "words_per_page": pytest.approx(24.2),
        "words_per_gist": pytest.approx(3.0),
        "gist_compression": pytest.approx(100 * (1 - 30 / 242)),
        "truncated_gists": 1,
        "stand_ins": None,
        "unreachable": None,
        "fallback": 50.0,
        "calls": 12,  # 2 of pagination, a gist a page
        "tokens": ANY,
    }
    foot = found["foot"]
    assert without_identity(foot["rater"]) == "scripted:teacher"
    assert foot["is_model"] is True
    assert (foot["engine"], foot["wording"]) == ("scripted", "ours")
    assert foot["family"].startswith("hand ")


def shown(values: Values, problems: Sequence[str | None] = (None,) * 6) -> str:
    """The mean, over how many where not over all six, and how many of them are answered."""
    value, valued = mean(values, ALL), [i for i in ALL if values[i] is not None]
    num, answered = len(valued), sum(problems[i] is None for i in valued)
    parts = (f"n={num}" * (num < 6), f"{answered} answered" * (answered < num))
    over = ", ".join(filter(None, parts))
    return "-" if value is None else f"{value:.1f}" + (f" ({over})" if over else "")


@pytest.mark.parametrize("place", ["run", "report", "report.md"])
def test_printed_table(hand: HandRun, place: str) -> None:
    if place == "run":
        text = hand.out
    elif place == "report":
        text = succeed("report", f"warehouse={hand.warehouse}")
    else:
        text = (hand.warehouse / "runs" / "hand" / "report.md").read_text()
    lines = [[cell.strip() for cell in line.strip("|").split("|")]
             for line in text.splitlines() if line.startswith("|")]  # fmt: skip
    assert tuple(lines[0]) == HEADINGS
    for line, (method, worked) in zip(lines[2:8], WORKED.items(), strict=True):
        by_measure = measures(worked)
        scores = [shown(by_measure.pop(name), worked.problems) for name in QUALITY]  # are first
        means = [*scores, *(shown(values) for values in by_measure.values())]
        fallback = "50.0" if method in READ_PAGES else "-"
        assert line == [method, "6", *means[:-1], fallback, means[-1]]


def test_by_question_type(hand: HandRun) -> None:
    rows = report(hand, "by=question_type")["rows"]
    for kind in set(TYPES):
        chosen = [i for i in ALL if TYPES[i] == kind]
        check_rows([row for row in rows if row["by"] == kind], chosen)
    assert len(rows) == 4 * len(WORKED)


@pytest.mark.slow
def test_the_same_run_with_higher_rates_is_complete(hand: HandRun, tmp_path: Path) -> None:
    """Two answers that the engine failed are asked for once more, and then nothing, whatever had a
    problem. In a copy: the run remembers its rates."""
    command = (*hand.copied(tmp_path), "max_problem_rate=1", "max_fallback_rate=1", "--json")
    for asked in ({"answer": 2}, {}):
        content = json.loads(succeed(*command))
        calls = {step.rpartition("-")[0]: n for step, n in content["calls"].items() if n}
        assert calls == asked
        check_rows(content["report"]["rows"], ALL)
