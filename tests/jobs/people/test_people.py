"""People label a sheet of answers, blind, and are compared with raters and with each other."""

import csv
import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from jobs.people.labels import kappa
from pipeline.files.storage import as_path
from pipeline.store.runs.run_folder import add_labels
from tests.support.command import refused, sql, succeed
from tests.support.runs.hand_numbers import FREE, ORDER, WORKED
from tests.support.runs.hand_run import QUESTIONS, HandRun

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
NUM_ANSWERS = 15  # of 3 + 2 + 3 + 2 + 2 + 3 by method; constant's three are alike but in question


Label = Callable[[Mapping[str, str]], str]


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


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_sheet_is_drawn_by_its_seed_in_equal_shares(sheets: Sheets) -> None:
    assert sheets.sheet("n=6") == sheets.sheet("n=6", "seed=0")
    orders = {tuple(row["row"] for row in sheets.sheet(f"seed={seed}")) for seed in range(4)}
    assert len(orders) == 4
    methods = {}
    for number in (6, 9):
        sheets.load(f"p{number}", lambda row: "no", f"n={number}")
        found = sql(sheets.warehouse, f"""select method, count(*) as n from people
            where rater = 'human:p{number}' group by all""", "run=hand")  # fmt: skip
        methods[number] = sorted(row["n"] for row in found)
    assert methods == {6: [1] * 6, 9: [1, 1, 1, 2, 2, 2]}

    assert {row["answer"] for row in sheets.sheet("method=constant")} == {"Nothing is known."}
    rows = sheets.sheet("where=document_id = 'ledger'")
    assert {row["question"] for row in rows} == {ASKED["l2"]}


@pytest.mark.slow
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
    found = sql(sheets.warehouse, """select q.question, label from people
        join questions q using (document_id, question_id) where method = 'bm25(top_k=1)'
        order by question_id""")  # fmt: skip
    assert [row["label"] for row in found] == ["yes", "no", "partially"]  # l2, m1, m2: E N P
    out = sheets.load("ann", lambda row: "Yes " if row["answer"] == "Peter." else "")
    assert "1 label of human:ann in run hand, new or changed: 1" in out
    assert "14 of 15 rows have no label" in out
    assert len(sql(sheets.warehouse, "from people", "run=hand")) == NUM_ANSWERS


def agreement(sheets: Sheets, *words: str) -> dict[tuple[str, str, str | None], dict[str, object]]:
    out = json.loads(succeed("rate", "agreement", *sheets.words, *words, "--json"))
    return {(row["person"], row["other"].partition(":")[0], row["rubric"]): row
            for row in out["agreements"]}  # fmt: skip


@pytest.mark.slow
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
    only = agreement(sheets, "method=constant")["human:ann", "scripted", "lr"]
    assert (only["n"], only["kappa"], only["weighted_kappa"]) == (3, None, None)  # all are no
    assert "1.00" in text


@pytest.mark.slow
def test_labels_of_answers_that_changed_do_not_count(sheets: Sheets) -> None:
    sheets.load("ann", as_the_rater)
    (row, *_) = sql(sheets.warehouse, "from people where method = 'constant'", "run=hand")
    changed: Any = [{**row, "answer_sha": "of another answer"}]
    add_labels(as_path(sheets.people.parent), "ann", changed)
    out = json.loads(succeed("rate", "agreement", *sheets.words, "--json"))
    assert (out["labels"], out["outdated"]) == (16, 1)
    assert "Left out: 1 label of" in succeed("rate", "agreement", *sheets.words)
    for chosen in ("method=gist_only", "where=question_id = 'none'"):
        assert "Left out" not in succeed("rate", "agreement", *sheets.words, chosen)
    assert "Left out: 1 label of" in succeed("rate", "agreement", *sheets.words, "method=constant")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cells", "says"),
    [
        ({"label": "maybe"}, "ann.csv:3: label 'maybe' is none of yes, partially, no; fix it"),
        ({"row": "r000000000000000"}, "ann.csv:3: row r000000000000000 is no answer of run=hand"),
        ({"row": "7' or true --"}, "ann.csv:3: row 7' or true -- is no answer of run=hand"),
        ({"row": "FIRST"}, "is there twice, first in line 2"),
    ],
)
def test_a_wrong_line_is_named_and_nothing_is_imported(
    sheets: Sheets, cells: dict[str, str], says: str
) -> None:
    rows = [{**row, "label": "no"} for row in sheets.sheet()]
    rows[1] |= {key: rows[0]["row"] if v == "FIRST" else v for key, v in cells.items()}
    # References of several lines are lines of the file, too: the first two have one.
    rows = [{**row, "references": "x"} for row in rows]
    file = sheets.file("ann.csv", rows)
    assert says in refused("rate", "import", file, "person=ann", *sheets.words)
    assert not sheets.people.exists()


@pytest.mark.slow
def test_mistakes(sheets: Sheets) -> None:
    empty = sheets.file("empty.csv", sheets.sheet())
    other = sheets.file("other.csv", [{"a": "1", "b": "2"}])
    words = sheets.words
    assert "no row has a label" in refused("rate", "import", empty, "person=ann", *words)
    assert "other.csv:2: no column row and label" in refused(
        "rate", "import", other, "person=ann", *words
    )
    assert "none.csv: No such file" in refused("rate", "import", "none.csv", "person=ann", *words)
    for place in (sheets.folder, sheets.folder / "sheet.xlsx", sheets.folder / "folder.csv"):
        if place.suffix:
            place.write_bytes(b"PK\x03\x04") if place.suffix == ".xlsx" else place.mkdir()
        says = refused("rate", "import", place, "person=ann", *words)
        assert "name the sheet that rate sheet has written" in says and "corpus" not in says
    to = f"to={sheets.folder / 'sheet.txt'}"
    says = refused("rate", "sheet", *words, to)
    assert says == f"{to}: a sheet is CSV; name a file that ends in .csv"
    assert "person=: write a name" in refused("rate", "import", empty, *words)
    assert "person=../x: write a name" in refused("rate", "import", empty, "person=../x", *words)
    for word in ("n=0", "n=x", "seed=x", "seed=-1"):
        option = word.partition("=")[0]
        told = refused("rate", "sheet", *sheets.words, word)
        assert told.startswith(f"{option}=")
    nothing = refused("rate", "sheet", *sheets.words, "where=document_id = 'tide'")
    assert "no answer to label: it needs free-form questions with references" in nothing
    assert "the run has no labels of people" in refused("rate", "agreement", *sheets.words)


L = ("yes", "partially", "no")


@pytest.mark.parametrize(
    ("rows", "order", "expected"),
    [
        ([[20, 5], [10, 15]], None, 0.4),  # (0.7 - 0.5) / 0.5; 0.5 = 0.5 x 0.6 + 0.5 x 0.4
        ([[20, 5], [10, 15]], L[:2], 0.4),  # with two labels weights change nothing
        ([[0, 1], [1, 0]], None, -1),
        ([[9, 0], [0, 0]], None, None),  # one label alone
        ([[0, 0], [0, 0]], None, None),
        # scikit-learn 1.9.1, cohen_kappa_score, then with weights="linear"
        ([[1, 4, 7], [6, 2, 5], [4, 7, 3]], None, -0.274257),
        ([[1, 4, 7], [6, 2, 5], [4, 7, 3]], L, -0.2767857),
        ([[20, 5, 2], [6, 12, 4], [1, 3, 17]], L, 0.6212804),
        ([[30, 0, 0], [0, 0, 0], [0, 0, 0]], L, None),
    ],
)  # fmt: skip
def test_kappa(
    rows: list[list[int]], order: tuple[str, ...] | None, expected: float | None
) -> None:
    confusion = {(L[a], L[b]): n for a, row in enumerate(rows) for b, n in enumerate(row)}
    found = kappa(confusion, order)
    assert found == (None if expected is None else pytest.approx(expected, abs=1e-6))
