"""Later on a finished run: `gistmill score` adds another system's answers, `rate` a rater."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import gistmill, refused, sql, succeed, without_identity
from tests.support.runs.hand_numbers import ORDER, WORKED, mean, measures
from tests.support.runs.hand_run import HandRun

pytestmark = pytest.mark.slow

# x1 is a bad row of the corpus, b1 asks of a bad document; m2 is missing.
THEIRS: dict[str, Any] = {"m1": "The great flood.", "t1": "gulls and waves", "l1": "(B)", "l2": 17,
                          "b1": "Nothing."}  # fmt: skip


class Scored:
    """A copy of the run's warehouse with another system's answers, and with a file that changed."""

    def __init__(self, hand: HandRun, folder: Path) -> None:
        hand.copied(folder)
        self.warehouse, self.file = folder / "warehouse", folder / "theirs.json"
        self.words = ["score", f"predictions={self.file}", "method=GPT 4o_x", "run=hand",
                      f"warehouse={self.warehouse}"]  # fmt: skip
        self.first = self.score(THEIRS)
        self.rows = sql(self.warehouse, "select * from answers where reader = 'given'")
        self.recall = sql(
            self.warehouse,
            "select value from scores where method = 'GPT 4o_x' and metric like 'evidence%'",
        )
        self.second = self.score({**THEIRS, "l2": "Entry four."})

    def score(self, answers: dict[str, Any]) -> Any:
        self.file.write_text(json.dumps(answers))
        done = gistmill(*self.words, "--json")
        assert done.returncode == 3, done.stderr  # more problems than allowed
        return json.loads(done.stdout), done.stderr


@pytest.fixture(scope="module")
def scored(hand: HandRun, tmp_path_factory: pytest.TempPathFactory) -> Scored:
    return Scored(hand, tmp_path_factory.mktemp("scored"))


def means(outcome: Any) -> dict[str, float | None]:
    (row,) = [r for r in outcome["report"]["rows"] if r["method"] == "GPT 4o_x"]
    return {name: mean["mean"] for name, mean in row["means"].items()}


def verdicts(outcome: Any) -> int:
    """How many were asked for."""
    return sum(n for step, n in outcome["calls"].items() if step.startswith("rate-"))


def test_every_question_has_a_row_and_a_missing_answer_counts_0(scored: Scored) -> None:
    """By hand: the rater calls m1 exact (3 words); of m2, l2 and b1 there is nothing to rate."""
    rows = {row["question_id"]: (row["problem"], row["answer_index"]) for row in scored.rows}
    assert rows == {
        "m1": (None, None), "m2": ("no_answer", None), "t1": (None, 2), "l1": (None, 1),
        "l2": ("bad_input", None), "b1": ("upstream", None),
    }  # fmt: skip
    found = means(scored.first[0])
    assert (found["lr_1"], found["accuracy"], found["squad_em"]) == (25, 100, 0)
    assert found["length"] == pytest.approx((3 + 3 + 1) / 3)


def test_what_it_read_is_not_known(scored: Scored) -> None:
    assert {row["value"] for row in scored.recall} == {None}
    assert {"compression_rate", "lookups", "words_read"}.isdisjoint(means(scored.first[0]))


def test_a_changed_file_redoes_its_changed_answers(scored: Scored) -> None:
    assert verdicts(scored.first[0]) == verdicts(scored.second[0]) == 2
    assert means(scored.second[0])["squad_em"] == 25
    assert means(scored.second[0])["lr_1"] == 50  # "Entry four." is exact: the permissive rater


def test_ours_stay_as_they_were(scored: Scored, hand: HandRun) -> None:
    query = """select method, measure, round(avg(value), 9) as mean, count(*) as n from measures
        where method <> 'GPT 4o_x' group by all order by all"""
    assert sql(scored.warehouse, query) == sql(hand.warehouse, query)


def test_its_name_stands_beside_ours(scored: Scored) -> None:
    words = (f"warehouse={scored.warehouse}", "run=hand")
    assert "| GPT 4o_x " in succeed("report", *words)
    assert "answers of GPT 4o_x from theirs.json" in succeed("report", *words)
    assert "The great flood." in succeed("trace", "m1", "method=GPT", *words)
    paired = sql(scored.warehouse, "select other from paired where method = 'GPT 4o_x'")
    assert {row["other"] for row in paired} >= {"gist_only", "full_text"}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["method=x"], "predictions= missing; write predictions="),
        (["predictions=FILE"], "method= missing"),
        (["predictions=FILE", "method=a,b"], "method=a,b: "),
        (["predictions=FILE", "method=bm25"], "method=bm25: a method of gistmill has this name"),
        (["predictions=FILE", "method=x", "method=y"], "method= is given twice"),
        (["predictions=/none.json", "method=x"], "predictions=/none.json: no such file"),
        (["predictions=FILE", "method=x", "run=night"], "run=night: not in"),
        (["predictions=FILE", "method=x", "raters=x"], "raters: no such key; nearest: rater"),
        (["predictions=WRONG", "method=x"], "WRONG: no question 'm9' in corpus=tables; "),
    ],
)  # fmt: skip
def test_mistakes(scored: Scored, tmp_path: Path, words: list[str], says: str) -> None:
    (tmp_path / "wrong.json").write_text('{"m9": "x"}')
    for short, file in (("FILE", scored.file), ("WRONG", tmp_path / "wrong.json")):
        words = [word.replace(short, str(file)) for word in words]
        says = says.replace(short, str(file))
    named = [] if any(word.startswith("run=") for word in words) else ["run=hand"]
    done = gistmill("score", *words, *named, f"warehouse={scored.warehouse}")
    assert done.returncode == 2
    *bad_rows, line = done.stderr.splitlines()
    assert says in line
    assert all(row.startswith("bad_input: ") for row in bad_rows)  # of the corpus


CALLS = "select stage, method, calls from runs where stage <> 'rate' order by all"
ALL = range(len(ORDER))


class Rated:
    """A copy of the run's warehouse with one rater more, and what was there before."""

    def __init__(self, hand: HandRun, folder: Path) -> None:
        hand.copied(folder)
        self.warehouse = folder / "warehouse"
        self.before = sql(self.warehouse, CALLS)
        self.outcome = json.loads(self.rate(hand.folder / "generous.yaml", "--json"))

    def rate(self, script: Path, *more: str) -> str:
        words = ("run=hand", f"warehouse={self.warehouse}", "rater=scripted")
        return succeed("rate", *words, f"rater.script={script}", *more, code=3)


@pytest.fixture(scope="module")
def rated(hand: HandRun, tmp_path_factory: pytest.TempPathFactory) -> Rated:
    return Rated(hand, tmp_path_factory.mktemp("rated"))


def test_nothing_but_ratings_is_asked(rated: Rated) -> None:
    """By hand: 42 verdicts, as many as the first rater gave."""
    assert sql(rated.warehouse, CALLS) == rated.before
    made = rated.outcome["calls"]
    assert {step.rpartition("-")[0] for step in made} == {"rate"}
    assert sum(made.values()) == 42
    query = "select rater, count(*) as n from ratings group by 1 order by 1"
    # Two rows a reference, or one that says that there are options: m2 4, m1, l2 and b1 2, t1 and
    # l1 1, by 6 methods.
    rows = [{**row, "rater": without_identity(row["rater"])} for row in sql(rated.warehouse, query)]
    assert rows == [
        {"rater": "scripted:generous", "n": 72},
        {"rater": "scripted:teacher", "n": 72},
    ]


@pytest.mark.parametrize("rater", ["scripted:generous", "scripted:teacher"])
def test_a_report_of_either_rater(rated: Rated, rater: str) -> None:
    words = (f"warehouse={rated.warehouse}", f"rater={rater}", "--json")
    report = json.loads(succeed("report", *words))
    assert without_identity(report["foot"]["rater"]) == rater
    for row in report["rows"]:
        worked = WORKED[row["method"]]
        letters = worked.generous_lr if rater.endswith("generous") else worked.lr
        for measure in ("lr_1", "lr_2"):
            expected = mean(measures(worked, letters)[measure], ALL)
            assert row["means"][measure]["mean"] == pytest.approx(expected), row["method"]
            assert row["means"][measure]["n"] == 4 - letters.count("U")
        assert row["counts"]["unscored"] == letters.count("U")
        assert row["counts"]["calls"] == sum(map(int, worked.calls.split()))


def test_the_report_asks_which_rater(rated: Rated, hand: HandRun, tmp_path: Path) -> None:
    """Two scripts of one name are two raters, whose verdicts are not averaged."""
    several = "the run has several raters; add rater=one of scripted:generous"
    where = f"warehouse={rated.warehouse}"
    assert without_identity(refused("report", where)) == f"{several}, scripted:teacher"
    line = refused("report", where, "rater=nobody")
    assert line.startswith("rater=nobody: the run has scripted:generous")
    script = tmp_path / "generous.yaml"
    script.write_text((hand.folder / "generous.yaml").read_text() + "\n# another\n")
    rated.rate(script)
    rows = sql(rated.warehouse, "select rater, count(*) as n from ratings group by 1 order by 1")
    assert [row["n"] for row in rows] == [72, 72, 72]
    assert refused("report", where, "rater=scripted:generous").startswith(f"{several}-")
