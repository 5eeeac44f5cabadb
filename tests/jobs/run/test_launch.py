"""A launch makes only what an earlier one has not made, or has changed, and names causes."""

import json
import shlex
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from jobs.graph.preparation import prepare
from jobs.graph.resolved_run import read_run
from jobs.run import launch
from pipeline.core.engine import EngineSettings
from pipeline.core.errors import UsageError
from pipeline.files.parquet import parquet_content
from pipeline.store import connect
from pipeline.store.runs.run_folder import UNITS, RunFolder
from pipeline.store.sql.accounts import accounts
from stages.corpora import load
from stages.read.answer_from_context import AnswerFromMemory
from tests.support.command import gistmill, sql, succeed
from tests.support.runs.warehouse import Warehouse, answer, chunk, score, step
from tests.support.texts.small_corpus import UNIFORM, document, question, write

Rows = list[dict[str, Any]]
DOCUMENTS = [document(number) for number in (1, 2, 3)]
QUESTIONS = [question(number, of=number) for number in (1, 2, 3)]

D, Q = "documents.jsonl", "questions.jsonl"
# What is wrong in a line of a file, by its index, and is mended or deleted later.
BROKEN: dict[str, tuple[str, int, Callable[[str], str]]] = {
    "a torn document": (D, 1, lambda line: line[:-20]),
    "a torn question": (Q, 1, lambda line: line[:-5]),
    "a document's id twice": (D, 2, lambda line: line.replace("d3", "d1")),
    "a question's id twice": (Q, 2, lambda line: line.replace("q3", "q1")),
    "a document without a text": (D, 1, lambda line: json.dumps(json.loads(line) | {"text": None})),
    "a question of no document": (Q, 1, lambda line: line.replace("d2", "d9")),
}
STEPS = 7  # documents, questions, paginate, gist, look_up, answer, score


class Night:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.words = ["corpus=tables", f"corpus.path={folder / 'corpus'}", *UNIFORM, "rater=none",
                      "methods=gist_only", "run=night", "cluster=inline",
                      f"warehouse={folder / 'w'}"]  # fmt: skip

    def run(self, documents: Rows, questions: Rows, *words: str) -> launch.Outcome:
        write(self.folder / "corpus", documents, questions)
        return launch.run(read_run([*self.words, *words]), lambda line: None)

    @property
    def units(self) -> list[tuple[Any, ...]]:
        file = self.folder / "w" / "runs" / "night" / "units.parquet"
        rows = pq.ParquetFile(file).read(UNITS.names).to_pylist()
        return sorted(tuple(map(str, row.values())) for row in rows)


@pytest.fixture
def finished(tmp_path: Path) -> Night:
    night = Night(tmp_path)
    assert night.run(DOCUMENTS, QUESTIONS).exit_code == 0
    return night


def test_nothing_is_made_again_where_nothing_has_changed(finished: Night) -> None:
    """Even by the planned units of an earlier version, and its plan in parts goes."""
    before = finished.units
    parts = finished.folder / "w" / "runs" / "night" / "plan"
    for _ in range(2):
        parts.mkdir()
        (parts / "0.parquet").write_bytes(b"")
        outcome = finished.run(DOCUMENTS, QUESTIONS)
        assert (outcome.exit_code, outcome.calls) == (0, {})
        assert finished.units == before != [] and not parts.exists()
        file = finished.folder / "w" / "runs" / "night" / "units.parquet"
        file.write_bytes(parquet_content(UNITS, [pq.ParquetFile(file).read(UNITS.names)]))


def test_a_changed_document_is_read_again_and_one_that_is_missing_refused(finished: Night) -> None:
    before = {row for row in finished.units if row[2] != "d2"}
    changed = [DOCUMENTS[0], {**DOCUMENTS[1], "text": "Another mill."}, DOCUMENTS[2]]
    outcome = finished.run(changed, QUESTIONS)
    assert (outcome.exit_code, sum(outcome.calls.values())) == (0, 2), "of one page, one answer"
    assert {row for row in finished.units if row[2] != "d2"} == before
    assert len(finished.units) == 3 * STEPS
    with pytest.raises(UsageError, match=r"1 document that this command leaves out \(d3\)"):
        finished.run(changed[:2], QUESTIONS[:2])
    with pytest.raises(UsageError, match=r"1 question that this command leaves out \(q3\)"):
        finished.run(changed, QUESTIONS[:2])


def test_all_are_answered_where_a_stage_uses_another_field(
    finished: Night, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a later version of it: the step's id is the same, its units are named by what they
    use."""
    for fields, more in (("question_fields", "question_type"), ("document_fields", "title")):
        monkeypatch.setattr(AnswerFromMemory, fields, (*getattr(AnswerFromMemory, fields), more))
        outcome = finished.run(DOCUMENTS, QUESTIONS)
        assert sum(outcome.calls.values()) == 3, "the answers"


def test_the_hash_of_a_corpus_is_that_of_every_row(tmp_path: Path) -> None:
    def digest(*words: str) -> str:
        few = ("corpus=synthetic", "corpus.num_documents=12", "corpus.words=60")
        resolved = read_run([*few, "corpus.questions=2", *words, f"warehouse={tmp_path}"])
        return prepare(resolved, tmp_path, lambda line: None).corpus_sha

    assert digest() == digest("run=other") != digest("corpus.questions=1") != digest("limit=11")


def test_a_corpus_that_breaks_in_the_middle_ends_the_run_before_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(corpus: Any) -> Iterator[Any]:
        yield from list(load(corpus))[:2]
        raise UsageError("corpus.path=x: the third file is no text; fix it")

    night = Night(tmp_path)
    with monkeypatch.context() as patched, pytest.raises(UsageError, match="the third file"):
        patched.setattr("jobs.graph.preparation.load", broken)
        night.run(DOCUMENTS, QUESTIONS)
    assert not (tmp_path / "w" / "tables" / "calls").exists()
    assert night.run(DOCUMENTS, QUESTIONS).exit_code == 0
    assert len(night.units) == 3 * STEPS


def test_prompts_show_the_time_of_the_first_launch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times: list[datetime] = []

    def of_run(settings: EngineSettings, launched_at: datetime) -> EngineSettings:
        times.append(launched_at)
        return settings

    monkeypatch.setattr(EngineSettings, "of_run", of_run)
    night = Night(tmp_path)
    night.run(DOCUMENTS, QUESTIONS, "limit=1")
    file = tmp_path / "w/runs/night/provenance.json"
    first = times[0].isoformat()
    assert file.read_text().count(first) == 1
    file.write_text(file.read_text().replace(first, "2024-02-29T23:59:00+00:00"))
    night.run(DOCUMENTS, QUESTIONS, "limit=2")
    assert times[1].isoformat() == "2024-02-29T23:59:00+00:00"


def test_a_run_complains_by_cause_with_how_many_and_what_to_do(tmp_path: Path) -> None:
    """Of the answers, 7 of 8 have a problem. Scores that an answer's problem reached are in the
    line of their cause."""
    problems: dict[str, dict[str, str | None]] = {
        "d1": {"q1": "timeout", "q2": "timeout", "q3": "unparseable"},
        "d2": {"q4": "timeout", "q5": "truncated"},
        "d3": {"q6": "timeout"},
        "d4": {"q7": "timeout"},
        "d5": {"q8": None},
    }
    warehouse, units = Warehouse(tmp_path), []
    answers, scores = step("answers", "full_text"), step("scores", "full_text")
    for document_id, of_document in problems.items():
        units.append(chunk(answers, document_id, *of_document))
        rows = [answer(q, document_id, problem=problem) for q, problem in of_document.items()]
        warehouse.commit(answers, units[-1], rows)
    scored = chunk(scores, "d1", "q1", "q2")
    after = replace(score("q1", "squad_em", 0.0), problem="upstream", detail="answer: timeout")
    warehouse.commit(scores, scored, [after, score("q2", "squad_em", 0.0)])
    warehouse.plan("r", (answers, units), (scores, [scored]))
    where = [f"warehouse={tmp_path}", "run=r"]

    def said(max_problem_rate: float) -> list[str]:
        resolved = read_run([*where, f"max_problem_rate={max_problem_rate}"])
        with connect(tmp_path, "r") as connection:
            return list(launch.exceeded_limits(connection, accounts(connection), resolved))

    assert said(0.875) == [], "as many as allowed"
    *lines, command = said(0.5)
    assert lines == [
        "timeout in answer: 5 rows and 1 after, 5 questions of 4 documents; raise "
        "engine.deadline_seconds=; gistmill retry asks again",
        "truncated in answer: 1 row, 1 question of 1 document; raise the prompt's "
        "reply_tokens.PROMPT=; gistmill retry asks again",
        "unparseable in answer: 1 row, 1 question of 1 document; gistmill retry asks again; "
        "reply_format=constrained allows no other reply",
    ]
    RunFolder(tmp_path, "r").start({"report": {"stages": ["answer"]}}, {}, True)
    assert json.loads(succeed("status", "--json", *where))["problems"] == lines
    limit, _, listing = command.partition("; all of them: gistmill ")
    assert limit == "in 1 step more than max_problem_rate=0.5 of the inputs have a problem"
    verb, query, *words = shlex.split(listing)
    assert (verb, words) == ("sql", where)
    columns = ("document_id", "question_id", "problem")
    listed = sorted(tuple(row[column] for column in columns) for row in sql(tmp_path, query))
    expected = [
        (document_id, q, problem)
        for document_id, of_document in problems.items()
        for q, problem in of_document.items()
        if problem
    ]
    assert listed == sorted([*expected, ("d1", "q1", "upstream")])


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("how", ["mended", "deleted"])
@pytest.mark.parametrize("what", BROKEN)
def test_the_same_command_goes_on_once_an_entry_is_mended(
    what: str, how: str, tmp_path: Path
) -> None:
    """It shows what a new run of the mended files does; what was good is not read again."""
    name, index, edit = BROKEN[what]
    write(tmp_path / "corpus", DOCUMENTS, QUESTIONS)
    file = tmp_path / "corpus" / name
    lines = file.read_text().splitlines(keepends=True)
    before, line, after = lines[:index], lines[index].strip(), lines[index + 1 :]
    file.write_text("".join([*before, edit(line), "\n", *after]))
    words = ["run", *Night(tmp_path).words, "max_problem_rate=1"]
    assert "bad_input" in gistmill(*words).stderr
    file.write_text("".join(lines if how == "mended" else before + after))
    done = gistmill(*words)
    assert done.returncode == 0, done.stderr
    assert ("reading: 1 documents\n" in done.stderr) == (how == "mended")
    assert "reading: 2" not in done.stderr
    succeed(*words, f"warehouse={tmp_path / 'new'}")
    for shown in (
        "select document_id, problem from documents",
        "select question_id, problem from questions",
        "select question_id, answer, problem from answers",
    ):
        found, wanted = (sql(tmp_path / w, f"{shown} order by all") for w in ("w", "new"))
        assert found == wanted
