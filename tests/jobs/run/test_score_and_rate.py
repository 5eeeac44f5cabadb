"""Later on a finished run: `gistmill score` adds another system's answers, `rate` a rater."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import gistmill, refused, sql, sql_values, succeed, without_identity
from tests.support.runs.hand_numbers import ORDER, WORKED, mean, measures
from tests.support.runs.hand_run import HandRun

pytestmark = pytest.mark.slow

# x1 is a bad row of the corpus, b1 asks of a bad document; m2 is missing.
THEIRS: dict[str, Any] = {"m1": "The great flood.", "t1": "gulls and waves", "l1": "(B)", "l2": 17,
                          "b1": "Nothing."}  # fmt: skip


def score(folder: Path, answers: dict[str, Any]) -> tuple[dict[str, float | None], int]:
    """Add these answers to the run in `folder`: their means, and how many verdicts were asked."""
    (folder / "theirs.json").write_text(json.dumps(answers))
    words = (f"predictions={folder / 'theirs.json'}", "method=GPT 4o_x", "run=hand")
    done = gistmill("score", *words, f"warehouse={folder / 'warehouse'}", "--json")
    assert done.returncode == 3, done.stderr  # more problems than allowed
    outcome = json.loads(done.stdout)
    (row,) = [r for r in outcome["report"]["rows"] if r["method"] == "GPT 4o_x"]
    num_verdicts = sum(n for step, n in outcome["calls"].items() if step.startswith("rate-"))
    return {name: mean["mean"] for name, mean in row["means"].items()}, num_verdicts


def test_another_system_s_answers_are_rows_beside_ours(hand: HandRun, tmp_path: Path) -> None:
    """By hand: the rater calls m1 exact (3 words); of m2, l2 and b1 there is nothing to rate."""
    hand.copied(tmp_path)
    warehouse = tmp_path / "warehouse"
    found, num_verdicts = score(tmp_path, THEIRS)
    assert num_verdicts == 2
    theirs = sql(warehouse, "select * from answers where reader = 'given'")
    rows = {row["question_id"]: (row["problem"], row["answer_index"]) for row in theirs}
    assert rows == {
        "m1": (None, None), "m2": ("no_answer", None), "t1": (None, 2), "l1": (None, 1),
        "l2": ("bad_input", None), "b1": ("upstream", None),
    }  # fmt: skip
    assert (found["lr_1"], found["accuracy"], found["squad_em"]) == (25, 100, 0)
    assert found["length"] == pytest.approx((3 + 3 + 1) / 3)
    # What it read is not known.
    query = "select value from scores where method = 'GPT 4o_x' and metric like 'evidence%'"
    assert {row["value"] for row in sql(warehouse, query)} == {None}
    assert {"compression_rate", "lookups", "words_read"}.isdisjoint(found)

    found, num_verdicts = score(tmp_path, {**THEIRS, "l2": "Entry four."})
    assert num_verdicts == 2, "of the answer that has changed"
    assert (found["squad_em"], found["lr_1"]) == (25, 50)  # exact by the permissive rater

    query = """select method, measure, round(avg(value), 9) as mean, count(*) as n from measures
        where method <> 'GPT 4o_x' group by all order by all"""
    assert sql(warehouse, query) == sql(hand.warehouse, query), "ours stay as they were"
    words = (f"warehouse={warehouse}", "run=hand")
    report = succeed("report", *words)
    assert "| GPT 4o_x " in report and "answers of GPT 4o_x from theirs.json" in report
    assert "The great flood." in succeed("trace", "m1", "method=GPT", *words)
    paired = sql(warehouse, "select other from paired where method = 'GPT 4o_x'")
    assert {row["other"] for row in paired} >= {"gist_only", "full_text"}


def test_mistakes(hand: HandRun, tmp_path: Path) -> None:
    hand.copied(tmp_path)
    theirs = tmp_path / "theirs.json"
    theirs.write_text(json.dumps(THEIRS))
    file = f"predictions={theirs}"
    for words, says in (
        (["method=x"], "predictions= missing; write predictions="),
        ([file], "method= missing"),
        ([file, "method=a,b"], "predictions.a,b.[key]=a,b: String should match pattern"),
        ([file, "method=bm25"], "method=bm25: a method of gistmill has this name"),
        (["predictions=/none.json", "method=x"], "predictions=/none.json: no such file"),
        ([file, "method=x", "raters=x"], "raters: no such key; nearest: rater"),
    ):
        where = ("run=hand", f"warehouse={tmp_path / 'warehouse'}")
        done = gistmill("score", *words, *where)
        assert done.returncode == 2
        *bad_rows, line = done.stderr.splitlines()
        assert says in line
        assert all(row.startswith("bad_input: ") for row in bad_rows)  # of the corpus


def test_a_second_rater_is_asked_for_ratings_alone_and_has_a_report(
    hand: HandRun, tmp_path: Path
) -> None:
    """By hand: 42 verdicts, as many as the first rater gave; two rows a reference, or one that says
    that there are options: m2 4, m1, l2 and b1 2, t1 and l1 1, by 6 methods."""
    hand.copied(tmp_path)
    warehouse = tmp_path / "warehouse"
    where = f"warehouse={warehouse}"

    def rate(script: Path) -> Any:
        words = ("run=hand", where, "rater=scripted", f"rater.script={script}", "--json")
        return json.loads(succeed("rate", *words, code=3))["calls"]

    def raters() -> list[tuple[str, int]]:
        rows = sql_values(warehouse, "select rater, count(*) from ratings group by 1 order by 1")
        return [(without_identity(rater), n) for rater, n in rows]

    asked = "select stage, method, calls from runs where stage <> 'rate' order by all"
    before = sql(warehouse, asked)
    calls = rate(hand.folder / "generous.yaml")
    assert {step.rpartition("-")[0] for step in calls} == {"rate"}
    assert sum(calls.values()) == 42
    assert sql(warehouse, asked) == before
    assert raters() == [("scripted:generous", 72), ("scripted:teacher", 72)]
    for rater in ("scripted:generous", "scripted:teacher"):
        report = json.loads(succeed("report", where, f"rater={rater}", "--json"))
        assert without_identity(report["foot"]["rater"]) == rater
        for row in report["rows"]:
            worked = WORKED[row["method"]]
            letters = worked.generous_lr if rater.endswith("generous") else worked.lr
            for measure in ("lr_1", "lr_2"):
                expected = mean(measures(worked, letters)[measure], range(len(ORDER)))
                assert row["means"][measure]["mean"] == pytest.approx(expected), row["method"]
                assert row["means"][measure]["n"] == 4 - letters.count("U")
            assert row["counts"]["unscored"] == letters.count("U")
            assert row["counts"]["calls"] == sum(map(int, worked.calls.split()))
    several = "the run has several raters; add rater=one of scripted:generous"
    assert without_identity(refused("report", where)) == f"{several}, scripted:teacher"
    line = refused("report", where, "rater=nobody")
    assert line.startswith("rater=nobody: the run has scripted:generous")
    # Two scripts of one name are two raters, whose verdicts are not averaged.
    script = tmp_path / "generous.yaml"
    script.write_text((hand.folder / "generous.yaml").read_text() + "\n# another\n")
    rate(script)
    assert raters() == [*[("scripted:generous", 72)] * 2, ("scripted:teacher", 72)]
    assert refused("report", where, "rater=scripted:generous").startswith(f"{several}-")
