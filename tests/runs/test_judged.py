"""Accuracy by a judge: runs of LongMemEval by the real command, worked by hand."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.jobs.report.test_report_means import column, report
from tests.support.command import sql_values, succeed

pytestmark = pytest.mark.slow

# Question id, type, what the judge replies (null: it is not asked), its rubric, the value.
CASES: list[tuple[str, str, str | None, str, float | None]] = [
    ("q1", "single-session-user", "Yes", "generic", 100),
    ("q2", "single-session-user", "**No**", "generic", 0),
    ("q3_abs", "single-session-user", "yes.", "abstention", 100),
    ("q4", "temporal-reasoning", "yes", "temporal", 100),
    ("q5", "knowledge-update", "Hard to say.", "knowledge_update", None),  # unscored
    ("q6", "single-session-preference", "no", "preference", 0),
    ("q7", "multi-session", None, "generic", 0),  # no answer
    ("q8_abs", "multi-session", "No", "abstention", 0),
    ("q9", "single-session-assistant", "YES", "generic", 100),
    ("q10", "multi-session", "yes", "generic", 100),
]
# 5 of the 9 scored; without q7 of 8. Types: 2 of 3, 1, 0, 1 of 3 (1 of 2 answered), 1;
# knowledge-update has no verdict and is no type of the mean.
WORKED = {
    "accuracy": (100 * 5 / 9, 9, 100 * 5 / 8, 8),
    "accuracy_by_type": (300 / 5, 9, (200 / 3 + 100 + 0 + 50 + 100) / 5, 8),
    "accuracy_abstention": (50, 2, 50, 2),
}
PRINTED = ["55.6 (n=9, 8 answered)", "60.0 (n=9, 8 answered)", "50.0 (n=2)"]
HEADINGS = ["accuracy", "by type", "abstention"]


def history(question_id: str, kind: str) -> dict[str, Any]:
    turns = [{"role": "user", "content": f"The mill of {question_id} stood by the river."}]
    return {
        "question_id": question_id, "question_type": kind, "question": f"Is it {question_id} ?",
        "answer": "by the river", "question_date": "2023/06/01 (Thu) 10:00",
        "haystack_session_ids": ["s1"], "haystack_dates": ["2023/05/30 (Tue) 21:48"],
        "haystack_sessions": [turns], "answer_session_ids": ["s1"],
    }  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run without a judge, which is added later."""
    folder = tmp_path_factory.mktemp("judged")
    histories = [history(case[0], case[1]) for case in CASES]
    (folder / "longmemeval_s.json").write_text(json.dumps(histories))
    # A question that is put to another prompt than its rubric's has no verdict.
    verdicts = [{"prompt": f"judge_{rubric}", "match": f"{question_id} ", "reply": reply}
                for question_id, _, reply, rubric, _ in CASES if reply]  # fmt: skip
    for name, rules in {
        "reader": [{"prompt": "answer", "match": "q7 ", "reply": "", "finish_reason": "abort"},
                   {"prompt": "answer", "reply": "It stood there."}],
        "teacher": [*verdicts, {"reply": "another rubric"}],
    }.items():  # fmt: skip
        (folder / f"{name}.yaml").write_text(yaml.safe_dump({"replies": rules}))
    of_run = ("run=r", f"warehouse={folder / 'warehouse'}")
    succeed(
        "run", "corpus=longmemeval", f"corpus.path={folder}", "methods=closed_book",
        "memory=uniform", "engine=scripted", f"engine.script={folder / 'reader.yaml'}",
        "rater=none", *of_run, "max_problem_rate=1",
    )  # fmt: skip
    _, table = report(folder)
    assert not {*HEADINGS, "LR-1"} & {*table[0]}  # nobody judges
    succeed("rate", *of_run, "rater=scripted", f"rater.script={folder / 'teacher.yaml'}")
    return folder


def test_accuracy_by_hand(folder: Path) -> None:
    means, table = report(folder)
    for measure, expected in WORKED.items():
        mean = means["closed_book"][measure]
        values = tuple(mean[key] for key in ("mean", "n", "answered_mean", "answered_n"))
        assert values == pytest.approx(expected), measure
    start = table[0].index("accuracy")
    assert table[0][start : start + 3] == HEADINGS
    assert table[2][start : start + 3] == PRINTED
    [row] = json.loads(succeed("report", f"warehouse={folder / 'warehouse'}", "--json"))["rows"]
    counts = {key: row["counts"][key] for key in ("n", "answered", "unscored")}
    assert counts == {"n": 10, "answered": 9, "unscored": 1}
    rows = sql_values(folder / "warehouse", "select question_id, rubric, 100 * value from judged")
    assert sorted(rows) == [(name, *verdict) for name, _, _, *verdict in sorted(CASES)]


def test_accuracy_of_each_type(folder: Path) -> None:
    means, _ = report(folder, "by=question_type")
    accuracy = {kind: of["accuracy"]["mean"] for kind, of in means.items() if "accuracy" in of}
    assert accuracy == pytest.approx({
        "multi-session": 100 / 3, "single-session-assistant": 100,
        "single-session-preference": 0, "single-session-user": 200 / 3,
        "temporal-reasoning": 100,
    })  # fmt: skip
    means, table = report(folder, "where=task = 'abstention'")
    assert means["closed_book"]["accuracy"]["mean"] == 50
    assert column(table, "by type") == ["50.0"]  # one of each of two types
