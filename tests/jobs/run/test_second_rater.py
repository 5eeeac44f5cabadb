"""A rater added to a finished run: nothing is answered again, both raters can be shown."""

import json
from pathlib import Path

import pytest

from tests.support.command import refused, sql, succeed, without_identity
from tests.support.runs.hand_numbers import ORDER, WORKED, mean, measures
from tests.support.runs.hand_run import HandRun

pytestmark = pytest.mark.slow

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
    script = tmp_path / "generous.yaml"
    script.write_text((hand.folder / "generous.yaml").read_text() + "\n# another\n")
    rated.rate(script)
    rows = sql(rated.warehouse, "select rater, count(*) as n from ratings group by 1 order by 1")
    assert [row["n"] for row in rows] == [72, 72, 72]
    assert refused("report", where, "rater=scripted:generous").startswith(f"{several}-")
