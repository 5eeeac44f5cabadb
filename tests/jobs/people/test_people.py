"""People label a sheet of answers, blind, and are compared with raters and with each other."""

import csv
import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pipeline.files.storage import as_path
from pipeline.store.runs.run_folder import add_labels
from tests.support.command import refused, sql, sql_values, succeed
from tests.support.runs.hand_numbers import FREE, ORDER, WORKED
from tests.support.runs.hand_run import QUESTIONS, HandRun

pytestmark = pytest.mark.slow
ASKED = {row["question_id"]: row["question"] for row in QUESTIONS}
LABELS = {"E": "yes", "P": "partially", "N": "no", "U": "no"}
# (question, answer) -> the letter of the worked LR, of the answers without a problem.
LETTERS = {
    (ASKED[question], answer): letter
    for worked in WORKED.values()
    for question, answer, problem, letter in zip(
        ORDER, worked.answers, worked.problems, worked.lr.split(), strict=True
    )
    if question in FREE and problem is None and answer
}
Label = Callable[[Mapping[str, str]], str]
NUM_ANSWERS = 15  # of 3 + 2 + 3 + 2 + 2 + 3 by method; constant's three are alike but in question


class Sheets:
    """A copy of the hand-worked run."""

    def __init__(self, hand: HandRun, folder: Path) -> None:
        hand.copied(folder)
        self.folder, self.warehouse = folder, folder / "warehouse"
        self.people = self.warehouse / "runs" / "hand" / "people"
        self.words = [f"warehouse={self.warehouse}", "run=hand"]

    def sheet(self, *words: str) -> list[dict[str, str]]:
        out = succeed("rate", "sheet", *self.words, *words)
        return list(csv.DictReader(io.StringIO(out)))

    def file(self, name: str, rows: list[dict[str, str]], delimiter: str = ",") -> Path:
        path = self.folder / name
        with path.open("w", encoding="utf-8-sig", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
            writer.writeheader()
            writer.writerows(rows)
        return path

    def load(self, person: str, label: Label, *words: str, delimiter: str = ",") -> str:
        """Import a sheet that the person has filled."""
        rows = [{**row, "label": label(row)} for row in self.sheet(*words)]
        file = self.file(f"{person}.csv", rows, delimiter)
        return succeed("rate", "import", file, f"person={person}", *self.words)


@pytest.fixture
def sheets(hand: HandRun, tmp_path: Path) -> Sheets:
    return Sheets(hand, tmp_path)


def as_the_rater(row: Mapping[str, str]) -> str:
    return LABELS[LETTERS[row["question"], row["answer"]]]


def test_a_sheet_shows_answers_and_hides_who_gave_them(sheets: Sheets) -> None:
    rows = sheets.sheet()
    assert len(rows) == NUM_ANSWERS == len({row["row"] for row in rows})
    assert {(row["question"], row["answer"]) for row in rows} == set(LETTERS)
    assert list(rows[0]) == ["row", "question", "references", "answer", "label", "comment"]
    assert {row["label"] for row in rows} == {""}
    mended = next(row for row in rows if row["question"].startswith("Who mended"))
    assert mended["references"].splitlines() == QUESTIONS[1]["references"]
    text = succeed("rate", "sheet", *sheets.words)
    assert not any(hidden in text for hidden in ("bm25", "gist_only", "scripted", "partial", "m1"))
    assert {row["answer"] for row in sheets.sheet("method=constant")} == {"Nothing is known."}
    of_ledger = sheets.sheet("where=document_id = 'ledger'")
    assert {row["question"] for row in of_ledger} == {ASKED["l2"]}


def test_a_sheet_is_drawn_by_its_seed_in_equal_shares(sheets: Sheets) -> None:
    assert sheets.sheet("n=6") == sheets.sheet("n=6", "seed=0")
    orders = {tuple(row["row"] for row in sheets.sheet(f"seed={seed}")) for seed in range(4)}
    assert len(orders) == 4
    for number, shares in ((6, [1] * 6), (9, [1, 1, 1, 2, 2, 2])):
        sheets.load(f"p{number}", lambda row: "no", f"n={number}")
        query = f"select count(*) from people where rater = 'human:p{number}' group by method"
        found = sql_values(sheets.warehouse, f"{query} order by all", "run=hand")
        assert found == [(share,) for share in shares]


def test_importing_twice_changes_nothing_and_a_later_label_replaces_an_earlier_one(
    sheets: Sheets,
) -> None:
    lr = sql(sheets.warehouse, "from lr order by all", "run=hand")
    out = sheets.load("ann", as_the_rater)
    assert f"{NUM_ANSWERS} labels of human:ann in run hand, new or changed: 15" in out
    stored = sheets.people / "ann.parquet"
    before = (stored.read_bytes(), stored.stat().st_mtime_ns)
    assert "new or changed: 0" in sheets.load("ann", as_the_rater)
    assert (stored.read_bytes(), stored.stat().st_mtime_ns) == before
    assert sql(sheets.warehouse, "from lr order by all", "run=hand") == lr, "no rater's verdict"
    query = "select question_id, label from people where method = 'bm25(top_k=1)' order by all"
    labels = sql_values(sheets.warehouse, query, "run=hand")
    assert labels == [("l2", "yes"), ("m1", "no"), ("m2", "partially")]  # E N P
    out = sheets.load("ann", lambda row: "Yes " if row["answer"] == "Peter." else "")
    assert "1 label of human:ann in run hand, new or changed: 1; of 15 rows" in out
    assert len(sql(sheets.warehouse, "from people", "run=hand")) == NUM_ANSWERS


def agreement(sheets: Sheets) -> dict[tuple[str, str, str | None], dict[str, object]]:
    out = json.loads(succeed("rate", "agreement", *sheets.words, "--json"))
    return {(row["person"], row["other"].partition(":")[0], row["rubric"]): row
            for row in out["agreements"]}  # fmt: skip


def test_agreement_with_the_rater(sheets: Sheets) -> None:
    """Of the worked letters 6 are E, 2 P, 6 N; the one U has no verdict. Ann says what the rater
    says, Bob says yes to all, which is as good as chance."""
    sheets.load("ann", as_the_rater)
    sheets.load("bob", lambda row: "YES", delimiter=";")
    found = agreement(sheets)
    ann, bob = found["human:ann", "scripted", "lr"], found["human:bob", "scripted", "lr"]
    assert (ann["n"], ann["unscored"], ann["percent"], ann["kappa"]) == (14, 1, 100, 1)
    assert ann["weighted_kappa"] == 1
    assert ann["confusion"] == [[6, 0, 0], [0, 2, 0], [0, 0, 6]]
    assert bob["confusion"] == [[6, 2, 6], [0, 0, 0], [0, 0, 0]]
    assert (bob["percent"], bob["kappa"]) == (pytest.approx(600 / 14), 0)
    # Ann gave the one without a verdict a no: 6 yes, 2 partially, 7 no of 15.
    both = found["human:ann", "human", None]
    assert both["confusion"] == [[6, 0, 0], [2, 0, 0], [7, 0, 0]]
    # strict: a partially of Ann's is a no; two labels. Bob's yes to all stays.
    assert found["human:ann", "scripted", "strict"]["labels"] == ["yes", "no"]
    text = succeed("rate", "agreement", *sheets.words)
    assert "human:ann (rows), human:bob (columns), n = 15:" in text
    assert "1.00" in text


def test_labels_of_answers_that_changed_do_not_count(sheets: Sheets) -> None:
    sheets.load("ann", as_the_rater)
    (row, *_) = sql(sheets.warehouse, "from people where method = 'constant'", "run=hand")
    changed: Any = [{**row, "answer_sha": "of another answer"}]
    add_labels(as_path(sheets.people.parent), "ann", changed)
    out = json.loads(succeed("rate", "agreement", *sheets.words, "--json"))
    assert (out["labels"], out["outdated"]) == (16, 1)
    ann = agreement(sheets)["human:ann", "scripted", "lr"]
    assert (ann["n"], ann["unscored"]) == (14, 1)
    assert "Left out: 1 label of" in succeed("rate", "agreement", *sheets.words)


def test_mistakes(sheets: Sheets) -> None:
    """A wrong line is named, and nothing is imported."""
    rows = [{**row, "label": "no"} for row in sheets.sheet()]
    # References of several lines are lines of the file, too: the first two have one.
    rows = [{**row, "references": "x"} for row in rows]

    def changed(**cells: str) -> Path:
        return sheets.file("ann.csv", [rows[0], {**rows[1], **cells}, *rows[2:]])

    def refused_import(file: Path | str, person: str = "person=ann") -> str:
        return refused("rate", "import", file, person, *sheets.words)

    twice = "is there twice, first in line 2"
    for cells, says in (
        ({"label": "maybe"}, "ann.csv:3: label 'maybe' is none of yes, partially, no"),
        ({"row": "7' or true --"}, "ann.csv:3: row 7' or true -- is no answer of run=hand"),
        ({"row": rows[0]["row"]}, f"ann.csv:3: row {rows[0]['row']} {twice}"),
    ):
        assert says in refused_import(changed(**cells))
    unlabelled = sheets.file("empty.csv", sheets.sheet())
    assert "no row has a label" in refused_import(unlabelled)
    other = sheets.file("other.csv", [{"a": "1", "b": "2"}])
    assert "other.csv:2: no column row and label" in refused_import(other)
    assert "none.csv: No such file" in refused_import("none.csv")
    assert "name the sheet that rate sheet has written" in refused_import(sheets.folder)
    for person in ("person=../x", "run=hand"):
        assert ": write a name" in refused_import(unlabelled, person)
    assert not sheets.people.exists()
    for word, says in {
        "n=0": "n=0: ",
        "seed=-1": "seed=-1: ",
        "where=document_id = 'tide'": "no answer to label: it needs free-form questions with",
    }.items():
        assert says in refused("rate", "sheet", *sheets.words, word)
    assert "the run has no labels of people" in refused("rate", "agreement", *sheets.words)
