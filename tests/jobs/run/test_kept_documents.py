"""A launch plans again only what an earlier one has not finished, and what has changed since."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from jobs.graph.read_run import read_run
from jobs.run import launch
from pipeline.core.errors import UsageError
from pipeline.files.parquet import parquet_content
from pipeline.store.runs.planned_units import UNITS
from pipeline.work.units import plan_document
from stages.read.answer_from_context import AnswerFromMemory
from tests.support.command import sql, succeed
from tests.support.texts.small_corpus import UNIFORM, document, question, write

Rows = list[dict[str, Any]]
DOCUMENTS = [document(number) for number in (1, 2, 3)]
QUESTIONS = [question(number, of=number) for number in (1, 2, 3)]

STEPS = 7  # documents, questions, paginate, gist, look_up, answer, score


class Night:
    """A run without Ray; `planned` are the documents that its last launch planned."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.planned = folder, list[str]()

        def noted(steps: Any, key: Any, *how: Any) -> Any:
            self.planned.append(key.document_id)
            return plan_document(steps, key, *how)

        monkeypatch.setattr("jobs.graph.preparation.plan_document", noted)

    def run(self, documents: Rows, questions: Rows, *words: str) -> launch.Outcome:
        self.planned.clear()
        write(self.folder / "corpus", documents, questions)
        given = ["corpus=tables", f"corpus.path={self.folder / 'corpus'}", *UNIFORM, "rater=none",
                 "methods=gist_only", "run=night", "cluster=inline",
                 f"warehouse={self.folder / 'w'}", *words]  # fmt: skip
        return launch.run(read_run(given), lambda line: None)

    @property
    def units(self) -> list[tuple[Any, ...]]:
        file = self.folder / "w" / "runs" / "night" / "units.parquet"
        return sorted((*row.values(),) for row in pq.ParquetFile(file).read().to_pylist())


@pytest.fixture
def night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Night:
    return Night(tmp_path, monkeypatch)


@pytest.fixture
def finished(night: Night) -> Iterator[Night]:
    """After a first launch, which made three answers."""
    outcome = night.run(DOCUMENTS, QUESTIONS)
    assert outcome.exit_code == 0 and sum(outcome.calls.values()) == 3 * 3 + 3
    assert night.planned == ["d1", "d2", "d3"]
    yield night


def test_nothing_is_planned_again_where_nothing_has_changed(finished: Night) -> None:
    before = finished.units
    for _ in range(2):
        outcome = finished.run(DOCUMENTS, QUESTIONS)
        assert (outcome.exit_code, outcome.calls, finished.planned) == (0, {}, [])
        assert finished.units == before != []


def test_a_changed_document_alone_is_planned_again(finished: Night) -> None:
    before = {row for row in finished.units if row[2] != "d2"}
    changed = [DOCUMENTS[0], {**DOCUMENTS[1], "text": "Another mill."}, DOCUMENTS[2]]
    outcome = finished.run(changed, QUESTIONS)
    assert outcome.exit_code == 0 and finished.planned == ["d2"]
    assert sum(outcome.calls.values()) == 2, "of one page, and one answer"
    assert {row for row in finished.units if row[2] != "d2"} == before
    assert len(finished.units) == 3 * STEPS


@pytest.mark.parametrize("change", [
    {"question": "Which?"}, {"references": ["x"]}, {"evidence": [[0, 9]]},
    {"asked_at": "2024/01/01"}, {"metadata": {"n": 1}}, {"question_type": "why"},
])  # fmt: skip
def test_so_is_one_with_a_changed_question(finished: Night, change: dict[str, Any]) -> None:
    outcome = finished.run(DOCUMENTS, [QUESTIONS[0], {**QUESTIONS[1], **change}, QUESTIONS[2]])
    assert (outcome.exit_code, finished.planned) == (0, ["d2"])


def test_so_is_one_with_another_question(finished: Night) -> None:
    outcome = finished.run(DOCUMENTS, [*QUESTIONS, question(4, of=3)])
    assert (outcome.exit_code, finished.planned) == (0, ["d3"])
    assert sum(outcome.calls.values()) == 1
    assert len(finished.units) == 3 * STEPS + 4, "loaded, looked up, answered and scored"


def test_a_document_that_comes_later_is_planned_alone(finished: Night) -> None:
    outcome = finished.run([*DOCUMENTS, document(4)], [*QUESTIONS, question(4, of=4)])
    assert (outcome.exit_code, finished.planned) == (0, ["d4"])
    assert len(finished.units) == 4 * STEPS


def test_all_are_planned_for_another_method(finished: Night) -> None:
    outcome = finished.run(DOCUMENTS, QUESTIONS, "methods=gist_only,bm25(top_k=1)")
    assert outcome.exit_code == 0 and finished.planned == ["d1", "d2", "d3"]
    finished.run(DOCUMENTS, QUESTIONS, "methods=gist_only,bm25(top_k=1)")
    assert finished.planned == []


@pytest.mark.parametrize("given", ["question_fields", "document_fields"])
def test_all_are_planned_where_a_stage_uses_another_field(
    finished: Night, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    """As in a later version of it: the step's id is the same, its units are named by what they
    use."""
    more = {"question_fields": "question_type", "document_fields": "title"}[given]
    monkeypatch.setattr(AnswerFromMemory, given, (*getattr(AnswerFromMemory, given), more))
    outcome = finished.run(DOCUMENTS, QUESTIONS)
    assert finished.planned == ["d1", "d2", "d3"]
    assert sum(outcome.calls.values()) == 3, "the answers"


def test_what_is_not_there_any_more_is_refused(finished: Night) -> None:
    with pytest.raises(UsageError, match=r"1 document that this command leaves out \(d3\)"):
        finished.run(DOCUMENTS[:2], QUESTIONS[:2])
    with pytest.raises(UsageError, match=r"1 question that this command leaves out \(q3\)"):
        finished.run(DOCUMENTS, QUESTIONS[:2])
    assert finished.planned == ["d3"]


def test_a_document_whose_shard_is_gone_is_planned_and_made_again(finished: Night) -> None:
    w = finished.folder / "w"
    (lost,) = [row for row in finished.units if row[0].startswith("answer") and row[2] == "d1"]
    for file in w.glob(f"tables/*/{lost[0]}/{lost[1]}.*"):
        file.unlink()
    outcome = finished.run(DOCUMENTS, QUESTIONS)
    assert (outcome.exit_code, finished.planned) == (0, ["d1"])


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


def test_the_file_of_an_earlier_version_is_planned_again(finished: Night) -> None:
    file = finished.folder / "w" / "runs" / "night" / "units.parquet"
    rows = pq.ParquetFile(file).read(UNITS.names)
    file.write_bytes(parquet_content(UNITS, [rows]))
    outcome = finished.run(DOCUMENTS, QUESTIONS)
    assert (outcome.exit_code, finished.planned) == (0, ["d1", "d2", "d3"])
