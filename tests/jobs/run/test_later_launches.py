"""A later launch of a run makes only what an earlier one has not made, and what has changed."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from jobs.graph.resolved_run import read_run
from jobs.run import launch
from pipeline.core.errors import UsageError
from pipeline.files.parquet import parquet_content
from pipeline.store.runs.planned_units import UNITS
from stages.read.answer_from_context import AnswerFromMemory
from tests.support.command import sql, succeed
from tests.support.texts.small_corpus import UNIFORM, document, question, write

Rows = list[dict[str, Any]]
DOCUMENTS = [document(number) for number in (1, 2, 3)]
QUESTIONS = [question(number, of=number) for number in (1, 2, 3)]

STEPS = 7  # documents, questions, paginate, gist, look_up, answer, score


class Night:
    """A run without Ray."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, documents: Rows, questions: Rows, *words: str) -> launch.Outcome:
        write(self.folder / "corpus", documents, questions)
        given = ["corpus=tables", f"corpus.path={self.folder / 'corpus'}", *UNIFORM, "rater=none",
                 "methods=gist_only", "run=night", "cluster=inline",
                 f"warehouse={self.folder / 'w'}", *words]  # fmt: skip
        return launch.run(read_run(given), lambda line: None)

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
    before = finished.units
    for _ in range(2):
        outcome = finished.run(DOCUMENTS, QUESTIONS)
        assert (outcome.exit_code, outcome.calls) == (0, {})
        assert finished.units == before != []


def test_a_changed_document_alone_is_read_again(finished: Night) -> None:
    before = {row for row in finished.units if row[2] != "d2"}
    changed = [DOCUMENTS[0], {**DOCUMENTS[1], "text": "Another mill."}, DOCUMENTS[2]]
    outcome = finished.run(changed, QUESTIONS)
    assert (outcome.exit_code, sum(outcome.calls.values())) == (0, 2), "of one page, one answer"
    assert {row for row in finished.units if row[2] != "d2"} == before
    assert len(finished.units) == 3 * STEPS


@pytest.mark.parametrize(
    ("changed", "num_calls", "redone"),
    [
        ({"references": ["another"]}, 0, {"questions", "score"}),
        ({"asked_at": "2024/01/01 (Mon)"}, 1, {"questions", "look_up", "answer", "score"}),
        ({"metadata": {"difficulty": 3}}, 0, {"questions"}),
    ],
)
def test_a_changed_question_redoes_what_uses_the_field(
    finished: Night, changed: dict[str, Any], num_calls: int, redone: set[str]
) -> None:
    before = {*finished.units}
    outcome = finished.run(DOCUMENTS, [{**QUESTIONS[0], **changed}, *QUESTIONS[1:]])
    assert (outcome.exit_code, sum(outcome.calls.values())) == (0, num_calls)
    assert {row[0].rpartition("-")[0] for row in {*finished.units} - before} == redone


def test_another_question_alone_is_asked(finished: Night) -> None:
    outcome = finished.run(DOCUMENTS, [*QUESTIONS, question(4, of=3)])
    assert (outcome.exit_code, sum(outcome.calls.values())) == (0, 1)
    assert len(finished.units) == 3 * STEPS + 4, "loaded, looked up, answered and scored"


@pytest.mark.parametrize("given", ["question_fields", "document_fields"])
def test_all_are_answered_where_a_stage_uses_another_field(
    finished: Night, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    """As in a later version of it: the step's id is the same, its units are named by what they
    use."""
    more = {"question_fields": "question_type", "document_fields": "title"}[given]
    monkeypatch.setattr(AnswerFromMemory, given, (*getattr(AnswerFromMemory, given), more))
    outcome = finished.run(DOCUMENTS, QUESTIONS)
    assert sum(outcome.calls.values()) == 3, "the answers"


def test_what_is_not_there_any_more_is_refused(finished: Night) -> None:
    with pytest.raises(UsageError, match=r"1 document that this command leaves out \(d3\)"):
        finished.run(DOCUMENTS[:2], QUESTIONS[:2])
    with pytest.raises(UsageError, match=r"1 question that this command leaves out \(q3\)"):
        finished.run(DOCUMENTS, QUESTIONS[:2])


def test_an_answer_whose_shard_is_gone_is_made_again(finished: Night) -> None:
    w = finished.folder / "w"
    (lost,) = [row for row in finished.units if row[0].startswith("answer") and row[2] == "d1"]
    for file in w.glob(f"tables/*/{lost[0]}/{lost[1]}.*"):
        file.unlink()
    outcome = finished.run(DOCUMENTS, QUESTIONS)
    assert (outcome.exit_code, sum(outcome.calls.values())) == (0, 1)


@pytest.mark.slow
def test_imported_answers_are_compared_at_every_launch(tmp_path: Path) -> None:
    write(tmp_path / "corpus", DOCUMENTS, QUESTIONS)
    words = [f"predictions={tmp_path / 'theirs.jsonl'}", "method=theirs", "corpus=tables",
             f"corpus.path={tmp_path / 'corpus'}", *UNIFORM, "rater=none", "run=night",
             "cluster=inline", f"warehouse={tmp_path / 'w'}"]  # fmt: skip
    for answers in ("abc", "abx"):
        rows = [{"question_id": f"q{n}", "answer": own} for n, own in enumerate(answers, 1)]
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / "theirs.jsonl").write_text(lines)
        succeed("score", *words)
        found = sql(tmp_path / "w", "select answer from answers order by question_id")
        assert [row["answer"] for row in found] == [*answers]


def test_the_planned_units_of_an_earlier_version_are_gone_on_with(finished: Night) -> None:
    file = finished.folder / "w" / "runs" / "night" / "units.parquet"
    rows = pq.ParquetFile(file).read(UNITS.names)
    file.write_bytes(parquet_content(UNITS, [rows]))
    outcome = finished.run(DOCUMENTS, QUESTIONS)
    assert (outcome.exit_code, outcome.calls) == (0, {})
