"""A judge of known mistakes is audited: they are found again, and means are corrected for them.

100 questions to 10 documents; the last digit of a question's number says what the judge does: 0, it
accepts nothing; 1 or 2, everything; else what has the number of the reference. So it rejects 10% of
right answers and accepts 20% of wrong ones. 6 of 10 answers of the method are right, whatever the
digit: 0.6 x 90% + 0.4 x 20% = 62% are accepted.
"""

import csv
import io
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.command import refused, succeed
from tests.support.texts.small_corpus import document, write

pytestmark = pytest.mark.slow

RIGHT = ("reference", "reworded", "more_detail")
WRONG = ("vague", "other_question", "changed", "refusal")
APART = ("empty", "instruction")
NUM = 60  # questions of the sample
NUMBERS = range(100)
SAME = r"answer:\n[^\n]*?\b(?P<n>\d+)\b[^\n]*\n\n.*key:\n[^\n]*\b(?P=n)\b"
JUDGE = [
    {"prompt": "rate_permissive", "reply": "No"},
    {"match": r"asked:\nWhat is \d*0\?", "reply": "NO"},
    {"match": r"asked:\nWhat is \d*[12]\?", "reply": "YES"},
    {"match": SAME, "reply": "YES"},
    {"reply": "NO"},
]


def is_right(number: int) -> bool:
    """The answers of the method: 6 of 10 to every document, and 6 of 10 of every last digit."""
    return (number + number // 10) % 5 < 3


def value(number: int) -> int:
    return 137 + 41 * number


class AuditedRun:
    """The run `night` of the method `theirs`."""

    def __init__(self, folder: Path) -> None:
        self.warehouse = folder / "warehouse"
        questions = [
            {"document_id": f"d{n // 10}", "question_id": f"q{n}", "question": f"What is {n}?",
             "references": [f"It was {value(n)} then.", f"Then {value(n)} it was."]}
            for n in NUMBERS
        ]  # fmt: skip
        write(folder / "corpus", [document(n) for n in range(10)], questions)
        (folder / "judge.yaml").write_text(yaml.safe_dump({"replies": JUDGE}))
        answers = {f"q{n}": f"{value(n) if is_right(n) else 0}, I think." for n in NUMBERS}
        (folder / "theirs.json").write_text(json.dumps(answers))
        self.corpus = ["corpus=tables", f"corpus.path={folder / 'corpus'}"]
        self.judge = ["rater=scripted", f"rater.script={folder / 'judge.yaml'}"]
        given = [f"predictions={folder / 'theirs.json'}", "method=theirs", "run=night"]
        succeed("score", *given, f"warehouse={self.warehouse}", *self.corpus, *self.judge)

    def copied(self, folder: Path) -> list[str]:
        shutil.copytree(self.warehouse, folder / "warehouse")
        return ["run=night", f"warehouse={folder / 'warehouse'}"]


def audits(words: list[str], *more: str) -> list[dict[str, Any]]:
    return list(json.loads(succeed("report", *words, *more, "--json"))["audits"])


def means(audit: dict[str, Any]) -> list[dict[str, Any]]:
    """The mean rates of LR-1, of right and of wrong answers."""
    means = [rate for rate in audit["means"] if rate["measure"] == "lr_1"]
    assert [rate["is_right"] for rate in means] == [True, False]
    return means


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> AuditedRun:
    return AuditedRun(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def audited(run: AuditedRun, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The words of a copy of the run that is audited."""
    words = run.copied(tmp_path_factory.mktemp("audit"))
    succeed("rate", "audit", *words, f"n={NUM}")
    return words


def file_of(words: list[str]) -> Path:
    """The known answers of the audit."""
    warehouse = Path(words[1].removeprefix("warehouse="))
    return warehouse / "runs" / "night-audit" / "known_answers.jsonl"


def test_a_judge_of_known_error_is_recovered(audited: list[str]) -> None:
    """Mistakes by kind are counted from the digits of the questions in the audit's file."""
    (found,) = audits(audited)
    known = [json.loads(line) for line in file_of(audited).read_text().splitlines()]
    assert (found["num_questions"], found["source"]) == (NUM, "run night-audit")
    rates = {rate["kind"]: rate for rate in found["rates"] if rate["measure"] == "lr_1"}
    assert list(rates) == [*RIGHT, *WRONG, *APART]
    for kind, rate in rates.items():
        own = [row["question_id"] for row in known if row["kind"] == kind]
        digits = "0" if kind in RIGHT else "12"
        mistaken = sum(question_id[-1] in digits for question_id in own)
        assert (rate["n"], rate["mistakes"]) == (NUM, pytest.approx(100 * mistaken / NUM))
        assert rate["low"] < rate["mistakes"] < rate["high"]
        assert rate["is_typical"] == (kind not in APART)
    right, wrong = means(found)
    assert right["low"] < 10 < right["high"] and wrong["low"] < 20 < wrong["high"]
    assert (right["n"], wrong["n"]) == (NUM, NUM)
    fr, fa = right["mistakes"] / 100, wrong["mistakes"] / 100
    assert [row["measure"] for row in found["corrected"]] == ["lr_1", "lr_2"]
    for row in found["corrected"]:
        assert (row["method"], row["n"], row["raw"]) == ("theirs", 100, pytest.approx(62))
        assert row["corrected"] == pytest.approx(100 * (0.62 - fa) / (1 - fr - fa))
        assert row["low"] < 60 < row["high"] and not row["is_cut"]
    assert found["unusable"] == []


def test_it_is_a_run_like_any_other(run: AuditedRun, audited: list[str]) -> None:
    """The same command asks nothing; a larger sample asks about what is new: 5 questions, by nine
    kinds of two verdicts against two references, but for `reworded` one."""
    where = audited[1]
    # Without run=, it is the audited run, though the audit was started last.
    assert succeed("status", where).startswith("run night: complete")
    for n, num_calls in ((NUM, 0), (NUM + 5, 5 * (8 * 4 + 2))):
        out = json.loads(succeed("rate", "audit", where, f"n={n}", "--json"))
        assert (out["run"], sum(out["calls"].values())) == ("night-audit", num_calls)
        assert [of["num_questions"] for of in out["report"]["audits"]] == [n]
    known = json.loads(file_of(audited).read_text().splitlines()[0])
    traced = succeed("trace", known["question_id"], "run=night-audit", where)
    assert "known_answer(kind=changed)" in traced and "It was " in traced
    line = refused("run", "run=night-audit", where, *run.corpus, "methods=constant")
    assert line.startswith("run=night-audit was started with other settings: audit_of night -> ")
    given = ("predictions=theirs.jsonl", "method=theirs")
    line = refused("score", "run=night-audit", where, *given)
    assert line.startswith("run=night-audit: an audit of raters has no other methods")


def test_answers_of_other_kinds_are_read_and_not_added_to(run: AuditedRun, tmp_path: Path) -> None:
    """Earlier versions took some from a file, or had a model write them."""
    words = run.copied(tmp_path)
    succeed("rate", "audit", *words, "n=12")
    before = audits(words)
    other = {"question_id": "q1", "kind": "vague_by_model", "worth": "wrong", "answer": None}
    with file_of(words).open("a") as lines:
        lines.write(json.dumps({**other, "reference": "It was 178 then."}) + "\n")
    line = refused("rate", "audit", *words, "n=12")
    assert "known_answers.jsonl: answers of the kind vague_by_model, which no rule makes" in line
    assert audits(words) == before


def test_a_part_of_an_audit_corrects_no_mean(
    run: AuditedRun, audited: list[str], tmp_path: Path
) -> None:
    """A file of its verdicts is lost."""
    shutil.copytree(audited[1].removeprefix("warehouse="), tmp_path / "warehouse")
    of_run = {file.name for file in run.warehouse.glob("tables/ratings/*/*")}
    verdicts = (tmp_path / "warehouse").glob("tables/ratings/*/*")
    next(file for file in verdicts if file.name not in of_run).unlink()
    assert audits([audited[0], f"warehouse={tmp_path / 'warehouse'}"]) == []


def test_mistakes(run: AuditedRun, tmp_path: Path) -> None:
    words = run.copied(tmp_path)
    assert refused("rate", "audit", *words, "n=0").startswith("n=0: ")
    line = refused("rate", "audit", *words, "methods=bm25")
    assert line.startswith("'methods=bm25': rate audit takes warehouse, run, n, seed, cluster")
    constant = [*run.corpus, "limit=1", "methods=constant", words[1]]
    for rater in ("none", "extractive"):
        succeed("run", *constant, f"rater={rater}", f"run=r-{rater}")
        line = refused("rate", "audit", words[1], f"run=r-{rater}")
        assert line.startswith(f"run=r-{rater} has no rater that is a model; ")
    succeed("run", *constant, "rater=none", "run=night-audit")
    assert refused("rate", "audit", *words).startswith("run=night-audit is no audit; ")
    bare = {"document_id": "d0", "question": "Why?"}  # without a reference
    chosen = {**bare, "options": ["a", "b"], "answer_index": 1}
    write(tmp_path / "bare", [document(0)], [bare, chosen])
    corpus = ["corpus=tables", f"corpus.path={tmp_path / 'bare'}", "methods=constant"]
    succeed("run", *corpus, words[1], "run=bare", *run.judge)
    assert refused("rate", "audit", words[1], "run=bare").startswith("run=bare has no free-form ")
    assert audits([words[1], "run=bare"]) == []


def test_a_judge_that_accepts_everything_corrects_no_mean(run: AuditedRun, tmp_path: Path) -> None:
    """Beside the other judge, in one audit of both."""
    words = run.copied(tmp_path)
    (tmp_path / "kind.yaml").write_text("replies: [{reply: 'Yes'}]")
    succeed("rate", *words, "rater=scripted", f"rater.script={tmp_path / 'kind.yaml'}")
    succeed("rate", "audit", *words, "n=12")
    text = succeed("report", *words, "rater=scripted:kind")
    assert "accepts 100.0% of right answers and 100.0% of wrong ones, so no mean can" in text
    assert "Means corrected" not in text
    assert "Audit of" not in succeed("report", *words, "rater=scripted:kind", "columns=rouge1_stem")
    (other,) = audits(words, "rater=scripted:judge")
    assert other["rater"].startswith("scripted:judge") and other["corrected"]
    assert len(audits(["run=night-audit", words[1]], "rater=scripted:kind")) == 2


def test_people_are_another_source(run: AuditedRun, tmp_path: Path) -> None:
    """A person who knows the truth labels all: 10% of the right ones and 20% of the wrong ones are
    mistakes, so that 60 of 100 are right."""
    words = run.copied(tmp_path)
    file = tmp_path / "ann.csv"
    with file.open("w", newline="") as sheet:
        writer = csv.DictWriter(sheet, ("row", "label"), extrasaction="ignore")
        writer.writeheader()
        for row in csv.DictReader(io.StringIO(succeed("rate", "sheet", *words, "n=200"))):
            number = int(re.findall(r"\d+", row["question"])[0])
            label = "yes" if is_right(number) else "no" if number % 2 else "partially"
            writer.writerow({**row, "label": label})
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
    assert re.search(r"\| mean +\| right \| false rejection +\| 80 \| +10\.0 \[", text)
    assert "Means corrected" in text
