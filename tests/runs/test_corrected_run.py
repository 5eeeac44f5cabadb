"""Runs over corrected corpora: what is asked anew and counted, and both scores of one answer."""

import json
import re
from pathlib import Path
from statistics import mean
from typing import Any

import pytest
from rouge_score.rouge_scorer import RougeScorer

from tests.support.command import WHOLE, gistmill, refused, sql, succeed
from tests.support.texts.loading import written
from tests.support.texts.small_corpus import UNIFORM, document, question, write

METRIC = "rougeL_stem"
CORRECTIONS = [
    {"question_id": "q1", "references": ["mill1 paragraph", "a mill"]},
    {"question_id": "q2", "question": "Which page is about river2?"},
    {"question_id": "q3", "references": ["a bell"], "replaces": "Who rang?"},
    {"question_id": "q9", "references": ["a bell"]},
]


def words(folder: Path, run: str, *more: str) -> list[str]:
    """A corpus of three documents with a question each, and a method that asks for each."""
    numbers = (1, 2, 3)
    write(folder / "corpus", [document(n) for n in numbers], [question(n, of=n) for n in numbers])
    return [
        "corpus=tables", f"corpus.path={folder / 'corpus'}", *UNIFORM, f"run={run}", "family=qmsum",
        "methods=bm25(top_k=1)", f"warehouse={folder / 'warehouse'}", *more,
    ]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runs `before` and, corrected, `after`."""
    folder = tmp_path_factory.mktemp("corrected")
    succeed("run", *words(folder, "before"))
    file = written(folder / "mine.jsonl", *CORRECTIONS)
    more = f"corpus.corrections={file}"
    done = gistmill("run", *words(folder, "after", more))
    assert done.returncode == 3, "two of five rows of questions are bad input"
    assert "corrected questions: reworded 1, new references 1, left out 0" in done.stderr
    assert 'bad_input: mine.jsonl:3: replaces "Who rang?", but the corpus has' in done.stderr
    assert 'bad_input: mine.jsonl:4: no question has the question_id "q9"' in done.stderr
    return folder


def rows(folder: Path, query: str, run: str = "after") -> list[dict[str, Any]]:
    return sql(folder / "warehouse", query, f"run={run}")


def test_only_a_reworded_question_is_asked_again(folder: Path) -> None:
    """Of the others the calls are those of the first run: they began before its last one."""
    query = """select question_id, max(started_at) > (select max(started_at) from all_calls
        where run = 'before') as is_new from calls where stage = 'answer' group by all order by 1"""
    assert [row["is_new"] for row in rows(folder, query)] == [False, True, False]
    query = "select count(distinct question_id) as n from calls where stage = 'rate'"
    assert rows(folder, query) == [{"n": 3}]


def test_originals_and_misfits_are_rows_of_questions(folder: Path) -> None:
    query = "select * from questions where problem is null order by question_id"
    first, second, third = rows(folder, query)
    assert first["references"] == ["mill1 paragraph", "a mill"]
    assert first["original_references"] == ["reference 0 of question 1"]
    assert (first["original_question"], second["original_references"]) == (None, None)
    assert second["question"] == "Which page is about river2?"
    assert second["original_question"] == "What is said in number 2 about mill2?"
    assert third["original_references"] is third["original_question"] is None
    query = """select metadata ->> '$.correction.question_id' as id from questions
        where problem = 'bad_input' order by 1"""
    assert rows(folder, query) == [{"id": "q3"}, {"id": "q9"}]
    query = "select inputs, ok, problem from runs where stage = 'questions'"
    assert rows(folder, query) == [{"inputs": 5, "ok": 3, "problem": 2}]
    before = rows(folder, "select question from questions where question_id = 'q2'", "before")
    assert before == [{"question": second["original_question"]}]


@pytest.mark.slow
def test_the_report_has_the_means_of_both_references_over_all_questions(folder: Path) -> None:
    """By rouge_score over the answers in the table."""
    scorer = RougeScorer(["rougeL"], use_stemmer=True)
    said = rows(folder, "select question_id, answer from answers order by question_id")
    corrected = [["mill1 paragraph", "a mill"], ["reference 0 of question 2"],
                 ["reference 0 of question 3"]]  # fmt: skip
    original = [["reference 0 of question 1"], *corrected[1:]]

    def means(of: list[list[str]]) -> float:
        each = [
            max(float(scorer.score(r, row["answer"])["rougeL"].fmeasure) for r in own)
            for row, own in zip(said, of, strict=True)
        ]
        return 100 * mean(each)

    report = succeed("report", f"warehouse={folder / 'warehouse'}", "run=after", "--json")
    [method] = json.loads(report)["rows"]
    found = [method["means"][name] for name in (METRIC, f"{METRIC}_original")]
    assert [mean["n"] for mean in found] == [3, 3]
    assert [mean["mean"] for mean in found] == pytest.approx([means(corrected), means(original)])
    assert found[0]["mean"] != found[1]["mean"]
    printed = succeed("report", f"warehouse={folder / 'warehouse'}", "run=after")
    assert f"| {METRIC} | {METRIC}_original |" in printed
    assert "Corrected questions: reworded 1, new references 1, left out 0, unused 2." in printed
    assert re.search(r"^corpus tables [0-9a-f]{12} corrected by mine\.jsonl · ", printed, re.M)
    latex = succeed(
        "export", "report", f"warehouse={folder / 'warehouse'}", "run=after", "format=latex"
    )
    assert "tables, corrected by mine.jsonl, 3 questions about" in latex
    plain = succeed("report", f"warehouse={folder / 'warehouse'}", "run=before")
    assert "_original" not in plain and "Corrected" not in plain


def test_a_trace_shows_what_was_corrected(folder: Path) -> None:
    shown = succeed("trace", "q1", f"warehouse={folder / 'warehouse'}", "run=after")
    assert "reference before it was corrected: reference 0 of question 1" in shown
    shown = succeed("trace", "q2", f"warehouse={folder / 'warehouse'}", "run=after")
    assert "before it was corrected: What is said in number 2 about mill2?" in shown


def test_a_plan_says_what_corrections_come_to_and_refuses_those_of_another_corpus(
    folder: Path,
) -> None:
    more = f"corpus.corrections={folder / 'mine.jsonl'}"
    planned = gistmill("plan", *words(folder, "planned", more, "limit=1"))
    assert planned.returncode == 0
    assert "corrected questions: reworded 0, new references 1, left out 0" in planned.stderr
    other = written(folder / "other.jsonl", {"question_id": "x1", "question": "Who?"})
    line = refused("plan", *words(folder, "planned", f"corpus.corrections={other}", "limit=1"))
    assert line.startswith(f"{other}: expected corrections of corpus=tables, which has no")
    assert line.endswith("set corpus.corrections=... or another corpus or corpus.split")


@pytest.mark.slow
def test_a_named_run_may_be_corrected_later(tmp_path: Path) -> None:
    """Its report is then over the corrected questions alone."""
    succeed("run", *words(tmp_path, "night"))
    file = written(tmp_path / "mine.jsonl", *CORRECTIONS[:2])
    succeed("run", *words(tmp_path, "night", f"corpus.corrections={file}"))
    query = "select count(*) as n, count(original_references) as corrected from questions"
    found = sql(tmp_path / "warehouse", query, "run=night")
    assert found == [{"n": 3, "corrected": 1}]


@pytest.mark.slow
@pytest.mark.whole
def test_literaryqa_on_seven_novels(tmp_path: Path) -> None:
    """201 of NarrativeQA's 206 questions: 12 reworded, 19 with other answers."""
    done = gistmill(
        "run", "experiment=literaryqa", f"corpus.path={WHOLE / 'narrativeqa'}", "memory=uniform",
        f"corpus.corrections={WHOLE / 'literaryqa'}", "methods=bm25(top_k=1),constant",
        f"warehouse={tmp_path}", "run=seven",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    line = "Corrected questions: reworded 12, new references 19, left out 5, unused 0."
    assert line in done.stdout
    query = """select ok, skipped, problem from runs where stage = 'questions'"""
    assert sql(tmp_path, query, "run=seven") == [{"ok": 201, "skipped": 5, "problem": 0}]
    report = json.loads(succeed("report", f"warehouse={tmp_path}", "run=seven", "--json"))
    means = {row["method"]: row["means"] for row in report["rows"]}
    assert {of[METRIC]["n"] for of in means.values()} == {201}
    assert {of[f"{METRIC}_original"]["n"] for of in means.values()} == {201}
    # The fixed answer by rouge_score, over the annotations as they stand in the files.
    scorer = RougeScorer(["rougeL"], use_stemmer=True)
    (said,) = sql(tmp_path, "select distinct answer from answers where method = 'constant'",
                  "run=seven")  # fmt: skip
    lines = [line for name in ("validation", "test") for line in
             (WHOLE / "literaryqa" / f"{name}.jsonl").read_text().splitlines()]  # fmt: skip
    answers = [qa["answers"] for line in lines for qa in json.loads(line)["qas"]]
    best = [max(float(scorer.score(a, said["answer"])["rougeL"].fmeasure) for a in own)
            for own in answers]  # fmt: skip
    assert means["constant"][METRIC]["mean"] == pytest.approx(100 * mean(best))
    shown = [round(means["constant"][name]["mean"], 1) for name in (METRIC, f"{METRIC}_original")]
    assert shown == [6.3, 6.6], "docs/own_data.md shows these"
