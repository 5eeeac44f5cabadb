"""A run is planned before it is executed; a later launch makes only what an earlier one has not
made, and what has changed or was mended."""

import json
from collections.abc import Callable, Iterator
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
from pipeline.store.runs.run_folder import UNITS
from stages.corpora import load
from stages.read.answer_from_context import AnswerFromMemory
from tests.support.command import gistmill, sql, succeed
from tests.support.texts.small_corpus import UNIFORM, document, question, write

Rows = list[dict[str, Any]]
DOCUMENTS = [document(number) for number in (1, 2, 3)]
QUESTIONS = [question(number, of=number) for number in (1, 2, 3)]

SHOWN = (
    "select document_id, problem from documents order by all",
    "select question_id, problem from questions order by all",
    "select question_id, answer, problem from answers order by all",
)
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
    """A run without Ray."""

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
    """Even by the planned units of an earlier version."""
    before = finished.units
    for _ in range(2):
        outcome = finished.run(DOCUMENTS, QUESTIONS)
        assert (outcome.exit_code, outcome.calls) == (0, {})
        assert finished.units == before != []
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


@pytest.mark.parametrize(
    ("fields", "more"), [("question_fields", "question_type"), ("document_fields", "title")]
)
def test_all_are_answered_where_a_stage_uses_another_field(
    finished: Night, monkeypatch: pytest.MonkeyPatch, fields: str, more: str
) -> None:
    """As in a later version of it: the step's id is the same, its units are named by what they
    use."""
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
    times: list[str] = []

    def of_run(settings: EngineSettings, launched_at: datetime) -> EngineSettings:
        times.append(launched_at.isoformat())
        return settings

    monkeypatch.setattr(EngineSettings, "of_run", of_run)
    night = Night(tmp_path)
    night.run(DOCUMENTS, QUESTIONS, "limit=1")
    file = tmp_path / "w/runs/night/provenance.json"
    stored = json.loads(file.read_text())
    assert times == [stored["launches"][0]["started_at"]]
    stored["launches"][0]["started_at"] = "2024-02-29T23:59:00+00:00"
    file.write_text(json.dumps(stored))
    night.run(DOCUMENTS, QUESTIONS, "limit=2")
    assert times[1:] == ["2024-02-29T23:59:00+00:00"]


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
    lines = file.read_text().splitlines()
    edited = [edit(line) if n == index else line for n, line in enumerate(lines)]
    file.write_text("\n".join(edited) + "\n")
    words = ["run", *Night(tmp_path).words, "max_problem_rate=1"]
    assert "bad_input" in gistmill(*words).stderr
    kept = lines if how == "mended" else [line for n, line in enumerate(lines) if n != index]
    file.write_text("\n".join(kept) + "\n")
    done = gistmill(*words)
    assert done.returncode == 0, done.stderr
    assert ("reading: 1 documents\n" in done.stderr) == (how == "mended")
    assert "reading: 2" not in done.stderr
    succeed(*words, f"warehouse={tmp_path / 'new'}")
    for statement in SHOWN:
        assert sql(tmp_path / "w", statement) == sql(tmp_path / "new", statement)
