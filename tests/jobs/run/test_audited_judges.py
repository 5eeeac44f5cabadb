"""Audits of judges on a server, by people, by a model's answers, and by those of a file."""

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.command import WHOLE, refused, sql, succeed
from tests.support.engines.loopback_server import Answer, LoopbackServer
from tests.support.runs.audited_run import (
    NUMBERS,
    SAME,
    AuditedRun,
    audits,
    by_kind,
    is_right,
    means,
)
from tests.support.texts.small_corpus import document, write

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
        (lambda body: Answer(text="No"), f"the rater rejects every answer{USELESS}"),
        (mostly_wrong, f"accepts {_SHARE} of right answers and {_SHARE} of wrong ones{USELESS}"),
        (true_judge, r"\| mean +\| right \| false rejection  \| 12 \| +0\.0 \["),
    ],
    ids=["accepts all", "rejects all", "is mostly wrong", "is right"],
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


def test_a_model_writes_where_it_is_asked_to(run: AuditedRun, tmp_path: Path) -> None:
    """The engine named writes, and goes on to; the raters stay those of the run."""
    words = run.copied(tmp_path)
    rules = [
        {"prompt": "restate", "match": "Say the same in other words", "reply": "Said anew."},
        {"prompt": "restate", "match": "one or two sentences more", "reply": "At length."},
        {"prompt": "restate", "match": "It was 137", "reply": "So", "finish_reason": "length"},
        {"prompt": "restate", "reply": "Something."},
    ]
    script = tmp_path / "writer.yaml"
    script.write_text(yaml.safe_dump({"replies": rules}))
    succeed("rate", "audit", *words, "n=2")
    line = refused("rate", "audit", *words, "by_model=true")
    assert line.startswith("by_model=true: engine=extractive is no model; add engine=NAME")
    engine = ["engine=scripted", f"engine.script={script}"]
    out = json.loads(succeed("rate", "audit", *words, "n=100", "by_model=true", *engine, "--json"))
    (audit,) = out["report"]["audits"]
    found = by_kind(audit)
    assert audit["rater"].startswith("scripted:judge")
    assert found["vague_by_model"]["n"] == 99  # one was cut, which is a problem
    assert found["reworded_by_model"]["is_right"] and found["more_detail_by_model"]["n"] == 100
    query = """select answer, count(*) as n from answers
        where method like '%by_model)' and problem is null group by all order by all"""
    rows = sql(tmp_path / "warehouse", query, "run=night-audit")
    said = [("At length.", 100), ("Said anew.", 100), ("Something.", 99)]
    assert [(row["answer"], row["n"]) for row in rows] == said
    query = "select prompt, count(*) as n from calls group by all"
    prompts = sql(tmp_path / "warehouse", query, "run=night-audit")
    assert {row["prompt"]: row["n"] for row in prompts}["restate"] == 300
    again = json.loads(succeed("rate", "audit", *words, "n=100", "--json"))
    assert sum(again["calls"].values()) == 0


def test_answers_of_a_file(run: AuditedRun, tmp_path: Path) -> None:
    """By id or by text; of questions outside the sample, too. What no question matches is left."""
    words = run.copied(tmp_path)
    rows = [
        {"question_id": "q15", "answer": "It was long ago."},
        {"question": "what is  16?", "answer": "Nobody said."},
        {"question_id": "q11", "answer": "Never."},  # accepted, as it ends in 1
        {"question_id": "elsewhere", "answer": "x"},
    ]
    file = tmp_path / "near.json"
    file.write_text(json.dumps(rows))
    succeed("rate", "audit", *words, "n=5", f"audit={file}")
    (audit,) = audits(words)
    near = by_kind(audit)["near"]
    assert (near["n"], near["is_right"], near["mistakes"]) == (3, False, pytest.approx(100 / 3))
    file.write_text(json.dumps(rows[3:]))
    line = refused("rate", "audit", *words, f"audit={file}")
    assert "none of its 1 question is one of run=night, by id or text; name the run" in line


@pytest.mark.whole
def test_answers_of_locomo_audit_are_given_to_a_run_s_rater(tmp_path: Path) -> None:
    """The questions of two conversations as a corpus; all 233 vague answers are judged, by a judge
    who accepts those with the word "with"."""
    file = WHOLE / "locomo_audit" / "v2_scored.json"
    users = json.loads(file.read_text())["detailed_results"]
    asked = [row for user in ("locomo_exp_user_0", "locomo_exp_user_1") for row in users[user]]
    questions = [
        {"document_id": "d0", "question_id": row["question_id"], "question": row["question"],
         "references": [str(row["golden_answer"])]}
        for row in asked
    ]  # fmt: skip
    write(tmp_path / "corpus", [document(0)], questions)
    rules = [{"match": r"answer:\n[^\n]*\bwith\b", "reply": "YES"}, {"reply": "NO"}]
    (tmp_path / "judge.yaml").write_text(yaml.safe_dump({"replies": rules}))
    words = [f"warehouse={tmp_path / 'warehouse'}", "run=lo"]
    judge = ["rater=scripted", f"rater.script={tmp_path / 'judge.yaml'}"]
    corpus = ["corpus=tables", f"corpus.path={tmp_path / 'corpus'}", "methods=constant"]
    succeed("run", *corpus, *words, *judge)
    succeed("rate", "audit", *words, "n=1", f"audit={file}")
    (audit,) = audits(words)
    found = by_kind(audit)["v2_scored"]
    accepted = sum(bool(re.search(r"\bwith\b", row["generated_answer"])) for row in asked)
    assert (found["n"], len(asked)) == (233, 233) and accepted > 5
    assert found["mistakes"] == pytest.approx(100 * accepted / 233)
