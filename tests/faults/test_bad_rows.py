"""Bad rows among good ones cost only themselves: the run goes on, every input is counted."""

import json
from contextlib import closing
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from upath import UPath

from jobs.config.options import ReadOptions
from jobs.html.run_page import Source
from jobs.trace.trace import read_reading_map
from tests.jobs.html.test_html import opened
from tests.support.command import gistmill, sql_values, succeed

pytestmark = pytest.mark.slow

METHODS = ("gist_only", "bm25(top_k=1)", "full_text", "constant")
TEXT = "The ferry leaves at noon.\n\nIts captain is called Rosa.\n\nShe likes the winter best."

DOCUMENTS: list[Any] = [
    {"document_id": "a", "text": TEXT},
    '{"document_id": "torn", "te',
    {"document_id": "n", "title": "without a text"},
    {"document_id": "b", "text": TEXT + " So does her dog."},
    {"document_id": "a", "text": "the same id again"},
    {"document_id": "e", "text": " \n"},
]
QUESTIONS: list[Any] = [
    {"document_id": "a", "question_id": "q1", "question": "Who is Rosa?", "references": ["She."]},
    '{"document_id": "a", "question',
    {"document_id": "a", "question_id": "q3", "references": ["No question."]},
    {"document_id": "n", "question_id": "q4", "question": "Upstream?", "references": ["Yes."]},
    {"document_id": "e", "question_id": "q5", "question": "Upstream too?", "references": ["Yes."]},
    {"document_id": "b", "question_id": "q6", "question": "Who likes the winter?",
     "options": ["Rosa", "Anna"], "answer_index": 0},
    {"document_id": "z", "question_id": "q7", "question": "Of which document?"},
    {"document_id": "b", "question_id": "q1", "question": "The same id?"},
]  # fmt: skip

# By hand, what becomes of the inputs as (inputs, ok, problem): neither the torn question nor the
# document z has a line of its own, and bad questions are not asked.
DOCUMENT_COUNTS, QUESTION_COUNTS, ASKED_COUNTS = (6, 2, 4), (8, 4, 4), (4, 2, 2)
SKIPPED = 1  # by the rater: multiple choice
BAD = {  # file:line of every bad row
    *(f"documents.jsonl:{n}" for n in (2, 3, 5, 6)),
    *(f"questions.jsonl:{n}" for n in (2, 3, 7, 8)),
}
ANSWERED = ("Who is Rosa?", "Who likes the winter?")
UPSTREAM = ("Upstream too?", "Upstream?")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> "tuple[CompletedProcess[str], Path]":
    """A run over the corpus, and its warehouse."""
    folder = tmp_path_factory.mktemp("bad")
    for name, rows in (("documents", DOCUMENTS), ("questions", QUESTIONS)):
        lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
        (folder / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in lines))
    warehouse = folder / "warehouse"
    methods = f"methods={','.join(METHODS)}"
    run = ("run", "corpus=tables", f"corpus.path={folder}", methods, f"warehouse={warehouse}")
    return gistmill(*run), warehouse


@pytest.fixture
def warehouse(finished: "tuple[CompletedProcess[str], Path]") -> Path:
    return finished[1]


def test_the_run_goes_on_and_names_every_bad_row(
    finished: "tuple[CompletedProcess[str], Path]",
) -> None:
    done, warehouse = finished
    assert done.returncode == 3, done.stderr  # more problems than allowed
    assert "Traceback" not in done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("bad_input: ")]
    assert all("; " in line for line in lines)  # what is wrong; what to do
    details = []
    for table in ("documents", "questions"):
        bad = f"select detail from {table} where problem = 'bad_input'"
        details += [detail for (detail,) in sql_values(warehouse, bad)]
    assert len(details) == DOCUMENT_COUNTS[2] + QUESTION_COUNTS[2]
    for texts in ([line.removeprefix("bad_input: ") for line in lines], details):
        assert {":".join(text.split(":")[:2]) for text in texts} == BAD


def test_good_rows_are_answered_and_questions_of_bad_documents_are_upstream_in_every_method(
    warehouse: Path,
) -> None:
    def questions(table: str, problem: str) -> list[tuple[Any, ...]]:
        return sql_values(
            warehouse,
            f"""select t.method, question from {table} t
            join questions using (question_id) where t.problem {problem} order by all""",
        )

    answered = questions("answers", "is null and answer is not null")
    assert answered == [(method, q) for method in sorted(METHODS) for q in ANSWERED]
    for table in ("lookups", "answers", "ratings", "scores"):
        upstream = sorted({*questions(table, "= 'upstream'")})
        assert upstream == [(method, q) for method in sorted(METHODS) for q in UPSTREAM], table


def test_status_counts_reconcile(warehouse: Path) -> None:
    state = json.loads(succeed("status", f"warehouse={warehouse}", "--json"))
    good = DOCUMENT_COUNTS[1]
    expected = {
        "documents": (*DOCUMENT_COUNTS, 0),
        "questions": (*QUESTION_COUNTS, 0),
        "paginate": (good, good, 0, 0),  # bad documents are no inputs of it
        "gist": (good, good, 0, 0),
        "look_up": (*ASKED_COUNTS, 0),
        "answer": (*ASKED_COUNTS, 0),
        "rate": (ASKED_COUNTS[0], ASKED_COUNTS[1] - SKIPPED, ASKED_COUNTS[2], SKIPPED),
        "score": (*ASKED_COUNTS, 0),
    }
    assert len(state["steps"]) == 4 + 4 * len(METHODS)
    for step in state["steps"]:
        counts = tuple(step[name] for name in ("inputs", "ok", "problem", "skipped"))
        assert counts == expected[step["stage"]], (step["stage"], step["method"])
    assert (state["complete"], state["alive"]) == (True, [])


def test_documents_that_questions_alone_name_are_none(warehouse: Path) -> None:
    """`ls` and the page count what the corpus has; the page has all problems."""
    documents, questions = DOCUMENT_COUNTS, QUESTION_COUNTS
    (listed,) = json.loads(succeed("ls", "runs", f"warehouse={warehouse}", "--json"))["runs"]
    assert (listed["documents"], listed["questions"]) == (documents[1], questions[1])
    with closing(Source(ReadOptions(UPath(warehouse)))) as source:
        index = opened(source.chunk("index") or b"")
    assert len(index["documents"]) == documents[0]
    (cause,) = index["causes"]
    assert (cause["problem"], cause["num_rows"]) == ("bad_input", documents[2] + questions[2])


def test_a_bad_question_is_shown_whatever_it_names(warehouse: Path) -> None:
    """Also one whose document the corpus does not have."""
    bad = "select question_id, detail from questions where problem = 'bad_input'"
    questions = sql_values(warehouse, bad)
    assert len(questions) == QUESTION_COUNTS[2]
    for question, detail in questions:
        traced = succeed("trace", question, f"warehouse={warehouse}")
        assert f"problem: bad_input {detail}\n" in traced
        assert read_reading_map(ReadOptions(UPath(warehouse)), question).methods == {}


def test_a_rater_that_is_no_model_fills_no_lr_column(warehouse: Path) -> None:
    """The reader rates its own answers here, and it is the extractive engine."""
    assert sql_values(warehouse, "select count(label) > 0 from ratings") == [(True,)]
    report = gistmill("report", f"warehouse={warehouse}").stdout
    table = [[cell.strip() for cell in line.strip("|").split("|")]
             for line in report.splitlines() if line.startswith("|")]  # fmt: skip
    lr = table[0].index("LR-1")
    assert table[0][lr : lr + 2] == ["LR-1", "LR-2"]
    for row in table[2 : 2 + len(METHODS)]:
        assert (row[1], *row[lr : lr + 2]) == (str(ASKED_COUNTS[0]), "-", "-")
    assert "rater none that is a model" in report
    assert "no language model" in report
