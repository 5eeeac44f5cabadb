"""A rater added to a finished run: nothing is answered again, both raters can be shown."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import gistmill, refused, succeed, without_identity
from tests.support.runs.hand_numbers import ORDER, WORKED, mean, measures
from tests.support.runs.hand_run import HandRun

pytestmark = pytest.mark.slow

CALLS = "select stage, method, calls from runs where stage <> 'rate' order by all"
ALL = range(len(ORDER))


class Rated:
    """A copy of the run's warehouse with one rater more, and what was there before."""

    def __init__(self, hand: HandRun, folder: Path) -> None:
        self.words = hand.copied(folder)
        self.warehouse = folder / "warehouse"
        self.before = self.sql(CALLS)
        script = hand.folder / "generous.yaml"
        out = succeed(
            "rate", "run=hand", f"warehouse={self.warehouse}", "rater=scripted",
            f"rater.script={script}", "--json", code=3,
        )  # fmt: skip
        self.outcome = json.loads(out)

    def sql(self, query: str) -> Any:
        done = gistmill("sql", query, f"warehouse={self.warehouse}", "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture(scope="module")
def rated(hand: HandRun, tmp_path_factory: pytest.TempPathFactory) -> Rated:
    return Rated(hand, tmp_path_factory.mktemp("rated"))


def check_lr(report: dict[str, Any], rater: str) -> None:
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


def test_nothing_but_ratings_is_asked(rated: Rated) -> None:
    """By hand: 42 verdicts, as many as the first rater gave."""
    assert rated.sql(CALLS) == rated.before
    made = rated.outcome["calls"]
    assert {step.rpartition("-")[0] for step in made} == {"rate"}
    assert sum(made.values()) == 42
    query = "select rater, count(*) as n from ratings group by 1 order by 1"
    # Two rows a reference, or one that says that there are options: m2 4, m1, l2 and b1 2, t1 and
    # l1 1, by 6 methods.
    rows = [{**row, "rater": without_identity(row["rater"])} for row in rated.sql(query)]
    assert rows == [
        {"rater": "scripted:generous", "n": 72},
        {"rater": "scripted:teacher", "n": 72},
    ]


@pytest.mark.parametrize("rater", ["scripted:generous", "scripted:teacher"])
def test_a_report_of_either_rater(rated: Rated, rater: str) -> None:
    done = gistmill("report", f"warehouse={rated.warehouse}", f"rater={rater}", "--json")
    check_lr(json.loads(done.stdout), rater)


def test_the_report_asks_which_rater(rated: Rated) -> None:
    assert without_identity(refused("report", f"warehouse={rated.warehouse}")) == (
        "the run has several raters; add rater=one of scripted:generous, scripted:teacher"
    )


def test_two_scripts_of_one_name_are_two_raters(
    rated: Rated, hand: HandRun, tmp_path: Path
) -> None:
    """The same name, another script: its verdicts must not be averaged with the first's."""
    script = tmp_path / "generous.yaml"
    script.write_text((hand.folder / "generous.yaml").read_text() + "\n# another\n")
    done = gistmill(
        "rate", "run=hand", f"warehouse={rated.warehouse}", "rater=scripted",
        f"rater.script={script}",
    )  # fmt: skip
    assert done.returncode in (0, 3), done.stderr  # by the rates that the last command allowed
    rows = rated.sql("select rater, count(*) as n from ratings group by 1 order by 1")
    assert [row["n"] for row in rows] == [72, 72, 72]
    line = refused("report", f"warehouse={rated.warehouse}", "rater=scripted:generous")
    assert line.startswith("the run has several raters; add rater=one of scripted:generous-")
