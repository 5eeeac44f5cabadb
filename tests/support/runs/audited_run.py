"""A run whose judge makes known mistakes, to be audited.

100 questions to 10 documents; the last digit of a question's number says what the judge does: 0, it
accepts nothing; 1 or 2, everything; else what has the number of the reference. So it rejects 10% of
right answers and accepts 20% of wrong ones. 6 of 10 answers of the method are right, whatever the
digit: 0.6 x 90% + 0.4 x 20% = 62% are accepted.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import yaml

from tests.support.command import succeed
from tests.support.texts.small_corpus import document, write

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
    """The run `night` of the method `theirs`; `words` name it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.warehouse = folder, folder / "warehouse"
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
        self.words = ["run=night", f"warehouse={self.warehouse}"]
        given = [f"predictions={folder / 'theirs.json'}", "method=theirs"]
        succeed("score", *given, *self.words, *self.corpus, *self.judge)

    def copied(self, folder: Path) -> list[str]:
        """The words of the run in a copy of its warehouse."""
        shutil.copytree(self.warehouse, folder / "warehouse")
        return ["run=night", f"warehouse={folder / 'warehouse'}"]


def audits(words: list[str], *more: str) -> list[dict[str, Any]]:
    """The audits in the run's report."""
    found: list[dict[str, Any]] = json.loads(succeed("report", *words, *more, "--json"))["audits"]
    return found


def by_kind(audit: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The rates of LR-1 by kind of known answers, or label."""
    return {rate["kind"]: rate for rate in audit["rates"] if rate["measure"] == "lr_1"}


def means(audit: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The mean rates of LR-1, of right and of wrong answers."""
    right, wrong = [rate for rate in audit["means"] if rate["measure"] == "lr_1"]
    assert right["is_right"] and not wrong["is_right"]
    return right, wrong
