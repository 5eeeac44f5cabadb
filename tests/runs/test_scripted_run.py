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
PRINTED = [
    ["readagent_p(max_pages=2)", "6", "33.3 (n=3, 1 answered)", "33.3 (n=3, 1 answered)",
     "45.0 (n=4, 2 answered)", "25.0 (n=4, 2 answered)", "50.0 (n=2, 1 answered)", "52.1 (n=5)",
     "1.0 (n=5)", "58.3 (n=4)", "75.0 (n=4)", "29.6 (n=5)", "50.0", "2.4 (n=5)"],
    ["full_text", "6", "25.0 (n=4, 2 answered)", "25.0 (n=4, 2 answered)",
     "20.8 (n=4, 2 answered)", "0.0 (n=4, 2 answered)", "50.0 (n=2, 1 answered)", "0.0 (n=3)",
     "0.0 (n=3)", "75.0 (n=4)", "75.0 (n=4)", "50.7 (n=3)", "-", "2.3 (n=3)"],
]  # fmt: skip


def report(hand: HandRun, *words: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(
        succeed("report", f"warehouse={hand.warehouse}", *words, "--json")
    )
    return content


def check_rows(rows: Sequence[dict[str, Any]], chosen: Sequence[int]) -> None:
    """Every mean and count of the methods, over the questions at the positions `chosen`."""
    assert [row["method"] for row in rows] == list(WORKED)
    for row in rows:
        worked, letters = WORKED[row["method"]], WORKED[row["method"]].lr.split()
        # Failed answers count 0 beside others, but alone they are no verdict.
        asked = [i for i in chosen if letters[i] != "-" and worked.problems[i] is None]
        is_unrated = {letters[i] for i in asked} == {"U"}
        for measure, values in measures(worked).items():
            expected = mean(values, chosen)
            if expected is None or (is_unrated and measure.startswith("lr_")):
                assert row["means"].get(measure, {"mean": None})["mean"] is None
                continue
            found = row["means"][measure]
            assert found["mean"] == pytest.approx(expected), (row["method"], measure)
            assert found["n"] == sum(values[i] is not None for i in chosen)
            assert (found["low"], found["high"], found["sd"]) == (None, None, None)
            if measure in QUALITY:
                answered = mean(values, [i for i in chosen if worked.problems[i] is None])
                assert found["answered_mean"] == pytest.approx(answered), (row["method"], measure)
            elif measure == "evidence_recall":  # read or not, whatever became of the answer
                read = [i for i in chosen if numbers(worked.words_read)[i] is not None]
                assert found["answered_mean"] == pytest.approx(mean(values, read))
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


def test_means_counts_memory_and_foot_are_those_worked_by_hand(hand: HandRun) -> None:
    found = report(hand)
    assert found["measures"] == list(QUALITY)
    assert all(row["by"] is None for row in found["rows"])
    check_rows(found["rows"], ALL)
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


@pytest.mark.parametrize("place", ["run", "report", "report.md"])
def test_printed_table(hand: HandRun, place: str) -> None:
    """Over how many answers a mean is where not over all six, and how many of them have no
    problem."""
    text = hand.out
    if place == "report":
        text = succeed("report", f"warehouse={hand.warehouse}")
    elif place == "report.md":
        text = (hand.warehouse / "runs" / "hand" / "report.md").read_text()
    lines = [[cell.strip() for cell in line.strip("|").split("|")]
             for line in text.splitlines() if line.startswith("|")]  # fmt: skip
    assert tuple(lines[0]) == HEADINGS
    assert [line[0] for line in lines[2:8]] == list(WORKED)
    assert [lines[3], lines[5]] == PRINTED


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
