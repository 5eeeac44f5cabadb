"""Audits of judges on a server, and by people."""

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import succeed
from tests.support.engines.loopback_server import Answer, LoopbackServer
from tests.support.runs.audited_run import (
    NUMBERS,
    SAME,
    AuditedRun,
    audits,
    is_right,
    means,
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> AuditedRun:
    return AuditedRun(tmp_path_factory.mktemp("run"))


def true_judge(body: dict[str, Any]) -> Answer:
    """Right about every answer."""
    text = body["messages"][-1]["content"]
    return Answer(text="Yes" if re.search(SAME, text, re.DOTALL) else "No")


def mostly_wrong(body: dict[str, Any]) -> Answer:
    """Right where the number of the question ends in 6 to 9."""
    is_late = re.search(r"is \d*[6-9]\?", body["messages"][-1]["content"])
    said = true_judge(body).text
    return Answer(text=said if is_late else "Yes" if said == "No" else "No")


_SHARE = r"\d\d\.\d%"
USELESS = ", so its verdicts say nothing and no mean can be corrected; take another rater model, or"


@pytest.mark.parametrize(
    ("judge", "says"),
    [
        (lambda body: Answer(text="Yes"), f"the rater accepts every answer{USELESS}"),
        (mostly_wrong, f"accepts {_SHARE} of right answers and {_SHARE} of wrong ones{USELESS}"),
        (true_judge, r"\| mean +\| right \| false rejection  \| 12 \| +0\.0 \["),
    ],
    ids=["accepts all", "is mostly wrong", "is right"],
)
def test_a_judge_on_a_server(
    run: AuditedRun, tmp_path: Path, judge: Callable[[dict[str, Any]], Answer], says: str
) -> None:
    words = [f"warehouse={tmp_path / 'warehouse'}", "run=night"]
    given = [f"predictions={run.folder / 'theirs.json'}", "method=theirs", "limit=2"]
    succeed("score", *given, *words, *run.corpus, *run.judge)
    with LoopbackServer(answer=judge) as server:
        address = [f"rater.base_url={server.url}", "rater.model=m", "rater.api_key_env=null"]
        succeed("rate", *words, "rater=openai", *address)
        succeed("rate", "audit", *words, "n=12")
    text = succeed("report", *words, "rater=openai")
    assert re.search(says, text)
    assert ("Means corrected" in text) == (judge is true_judge)
    assert len(audits(["run=night-audit", words[0]], "rater=openai")) == 2  # of both raters
    (scripted,) = audits(words, "rater=scripted")
    assert scripted["rater"].startswith("scripted:judge") and scripted["corrected"]


def test_people_are_another_source(run: AuditedRun, tmp_path: Path) -> None:
    """A person who knows the truth labels all: 10% of the right ones and 20% of the wrong ones are
    mistakes, so that 60 of 100 are right."""
    words = run.copied(tmp_path)
    rows = list(csv.DictReader(io.StringIO(succeed("rate", "sheet", *words, "n=200"))))
    for row in rows:
        number = int(re.findall(r"\d+", row["question"])[0])
        row["label"] = "yes" if is_right(number) else "no" if number % 2 else "partially"
    file = tmp_path / "ann.csv"
    with file.open("w", newline="") as sheet:
        writer = csv.DictWriter(sheet, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    succeed("rate", "import", file, "person=ann", *words)
    (audit,) = audits(words)
    assert (audit["source"], audit["num_questions"]) == ("human:ann", 100)
    found = {(r["measure"], r["kind"]): (r["is_right"], r["n"]) for r in audit["rates"]}
    partly = sum(not is_right(n) and n % 2 == 0 for n in NUMBERS)
    assert found["lr_1", "yes"] == (True, 60) and found["lr_1", "partially"] == (False, partly)
    assert found["lr_2", "partially"] == (True, partly)  # LR-2 counts what is right in part
    right, wrong = means(audit)
    assert (right["mistakes"], wrong["mistakes"]) == (pytest.approx(10), pytest.approx(20))
    assert (right["n"], wrong["n"]) == (60, 40)
    assert audit["corrected"][0]["corrected"] == pytest.approx(60)
    text = succeed("report", *words)
    assert "by the labels of human:ann" in text and re.search(r"\| partially +\| wrong \|", text)
