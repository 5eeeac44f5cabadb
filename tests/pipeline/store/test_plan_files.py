"""The plan of a launch, which is the file of the run's planned units."""

from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from pipeline.core.errors import DamagedError
from pipeline.store.runs.run_folder import PlannedWork, RunFolder, read_plan, write_plan
from pipeline.work.units import Execution, PlannedDocument, Unit


def book(name: str, words: int, *questions: str, is_done: bool = False) -> PlannedDocument:
    """A document with a unit of its own in one step, and one of its questions in another."""
    page = Unit(step_id="paginate-0", unit=f"0{name}", document_id=name, is_done=is_done)
    asked = Unit(step_id="answer-0", unit=f"1{name}", document_id=name, is_done=is_done,
                 inputs=dict.fromkeys(questions, "2"))  # fmt: skip
    return PlannedDocument(name, words, False, len(questions), [page, asked])


def written(folder: Path, *documents: PlannedDocument) -> Path:
    write_plan(folder / "plan.parquet", [*documents])
    return folder / "plan.parquet"


def test_what_is_read_is_what_was_written_the_longest_first(tmp_path: Path) -> None:
    """Those of a length as they came. A name may be any text, and that of a unit in other steps."""
    retried = Unit(step_id="answer-1", unit="1", document_id="é", inputs={"": "1", "q": "2"},
                   chunk=3, attempt=2, is_done=True)  # fmt: skip
    units = [retried, replace(retried, step_id="answer-0", chunk=None, is_done=False)]
    odd = PlannedDocument("é", 3, False, 7, units)
    bad = PlannedDocument("", 0, True, 0, [replace(retried, document_id="", inputs={})])
    long, short = book("b", 9, "q1", "q2"), book("a", 3, is_done=True)
    assert [*read_plan(written(tmp_path, bad, odd, long, short))] == [long, odd, short, bad]


def test_the_words_of_work_are_those_that_pending_units_read(tmp_path: Path) -> None:
    """By hand: 7 words and 1 of a page's memory; two questions read two tenths each, and 300."""
    plan = written(tmp_path, book("a", 7, "q1", "q2"), book("b", 9, is_done=True))
    steps = frozenset({"paginate-0", "answer-0"})
    whole = PlannedWork(plan, Execution("reading", steps, steps, steps))
    ((document_id, _, words, _),) = whole
    assert (document_id, round(words, 6)) == ("a", 8 + 2.8 + 300)
    pages = PlannedWork(plan, Execution("reading", frozenset({"paginate-0"}), steps, steps))
    ((_, units, words, num_words),) = pages
    assert (words, num_words) == (8, 7) and [unit.is_done for unit in units] == [False, True]


def test_the_planned_inputs_of_a_run_are_those_of_its_plan(tmp_path: Path) -> None:
    night = RunFolder(tmp_path, "night")
    night.plan([], written(tmp_path, book("a", 3, "q1", "q2"), book("b", 4)))
    file = tmp_path / "runs" / "night" / "units.parquet"
    columns = "step_id, unit, document_id, question_id"
    assert duckdb.execute(f"select {columns} from '{file}' order by all").fetchall() == [
        ("answer-0", "1a", "a", "q1"), ("answer-0", "1a", "a", "q2"),
        ("answer-0", "1b", "b", None), ("paginate-0", "0a", "a", None),
        ("paginate-0", "0b", "b", None),
    ]  # fmt: skip
    plan = written(tmp_path, book("b", 4, "q2"))
    assert night.missing_from(plan, "document_id") == {"a"}
    assert night.missing_from(plan, "question_id") == {"q1"}
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(DamagedError):
        night.missing_from(plan, "question_id")
