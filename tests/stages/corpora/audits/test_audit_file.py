"""Files of answers of known worth, and the rates of the verdicts in them."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import binomtest

from stages.corpora.audits.audit_file import read_audit_file
from tests.support.command import NEEDS_WHOLE, WHOLE, refused, succeed

ROW = {"question_id": "q1", "answer": "In 1921."}
LOCOMO = {
    "question_id": "locomo_0_qa1", "question": "When?", "golden_answer": "2022",
    "generated_answer": "2021", "category": "2",
    "llm_judgments": {"judgment_1": True, "judgment_2": False, "judgment_3": False},
}  # fmt: skip


def write(folder: Path, content: Any, name: str = "mine.json") -> Path:
    (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))
    return folder / name


def test_rows_of_one_s_own(tmp_path: Path) -> None:
    rows = [ROW, {"question": "Who?", "answer": "Bo", "kind": "near", "worth": "right",
                  "llm_judgments": True}]  # fmt: skip
    first, second = read_audit_file(str(write(tmp_path, rows, "my own.json")))
    assert (first.question_id, first.kind, first.worth, first.answer, first.verdicts) == (
        "q1", "my_own", "wrong", "In 1921.", ())  # fmt: skip
    assert (second.question_id, second.question, second.kind, second.worth, second.verdicts) == (
        None, "Who?", "near", "right", (True,))  # fmt: skip
    (row,) = read_audit_file(str(write(tmp_path, "question_id,answer\nq7,No\n", "a.csv")))
    assert (row.question_id, row.answer, row.kind) == ("q7", "No", "a")


def test_rates_are_those_of_the_verdicts(tmp_path: Path) -> None:
    """By hand. wrong: 3 answers, of 7 verdicts 4 accept, by majority 1 (half is none). right: 2
    answers of one verdict each, one rejects."""
    said = [[True, True, False], [True, False], [True, False]]
    rows: list[dict[str, Any]] = [{**ROW, "llm_judgments": dict(enumerate(own))} for own in said]
    fine: dict[str, Any] = {**ROW, "kind": "fine", "worth": "right"}
    rows += [{**fine, "llm_judgments": own} for own in (True, False)]
    file = write(tmp_path, rows)
    wrong, right = json.loads(succeed("rate", "audit", f"audit={file}", "--json"))
    assert (wrong["n"], wrong["verdicts"], wrong["accepted_verdicts"]) == (3, 7, 4)
    assert wrong["of_verdicts"]["mistakes"] == pytest.approx(400 / 7)
    assert wrong["by_majority"]["mistakes"] == pytest.approx(100 / 3)
    assert (right["kind"], right["is_right"]) == ("fine", True)
    assert right["by_majority"]["mistakes"] == 50
    shown = succeed("rate", "audit", f"audit={file}")
    assert "9 verdicts in the file; no model was asked." in shown
    assert "| fine | right | false rejection  | 2 |" in shown


@pytest.mark.parametrize("name", [pytest.param(n, marks=NEEDS_WHOLE) for n in ("v1", "v2")])
def test_the_verdicts_of_locomo_audit(name: str) -> None:
    """Counted by a reader of its own; intervals as scipy has them for the majorities."""
    file = WHOLE / "locomo_audit" / f"{name}_scored.json"
    counts = Counter[str]()
    for rows in json.loads(file.read_text())["detailed_results"].values():
        for row in rows:
            votes = [*row["llm_judgments"].values()]
            counts += Counter(n=1, verdicts=3, accepted=votes.count(True))
            counts["majority"] += votes.count(True) >= 2
    assert (counts["n"], counts["verdicts"]) == (385, 1155)
    assert counts["accepted"] == {"v1": 149, "v2": 744}[name]
    (row,) = json.loads(succeed("rate", "audit", f"audit={file}", "--json"))
    assert (row["kind"], row["is_right"]) == (f"{name}_scored", False)
    assert (row["n"], row["verdicts"]) == (385, 1155)
    assert row["accepted_verdicts"] == counts["accepted"]
    assert row["of_verdicts"]["mistakes"] == pytest.approx(100 * counts["accepted"] / 1155)
    exact = binomtest(counts["majority"], 385).proportion_ci(method="exact")
    assert row["by_majority"] == pytest.approx(
        {"mistakes": 100 * counts["majority"] / 385, "low": 100 * exact.low,
         "high": 100 * exact.high}
    )  # fmt: skip


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ([{"answer": "x"}], "mine.json:1: no question_id and no question; add one of them"),
        ([ROW, {"question_id": "q2"}], "mine.json:2: no answer; add the column answer, or delete"),
        ([ROW | {"worth": "good"}], "mine.json:1: worth 'good': write right or wrong"),
        ([ROW | {"kind": "vague"}], "mine.json:1: kind 'vague': write letters, digits"),
        ([ROW | {"kind": "a b"}], "mine.json:1: kind 'a b': write letters, digits"),
        ([ROW, ROW | {"worth": "right"}], "mine.json:2: kind 'mine' is right and wrong; name two"),
        ([ROW | {"llm_judgments": {"a": "yes"}}], "mine.json:1: llm_judgments: write {name: true"),
        ([ROW | {"answer": ["x"]}], "mine.json:1: `answer` is a list, not a string; fix it"),
        ([ROW, 5], "mine.json:2: "),
        ("[]", "mine.json: holds no answer; name a file of answers of known worth"),
        ({"detailed_results": {"user": [LOCOMO, 3]}}, "mine.json:1: user[1]: "),
        ([ROW], "mine.json: has no verdicts to count (llm_judgments); add run=NAME, whose raters"),
    ],
)
def test_a_wrong_file_is_one_line(tmp_path: Path, content: Any, says: str) -> None:
    line = refused("rate", "audit", f"audit={write(tmp_path, content)}")
    assert says in line


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    line = refused("rate", "audit", f"audit={tmp_path / 'none.json'}")
    assert line.endswith("none.json: no such file; name a file of answers of known worth")
