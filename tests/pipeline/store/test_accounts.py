"""Inputs = ok + problem + skipped + not done, counted by the views, by hand."""

import pytest

from pipeline.core.errors import AccountingError
from pipeline.store import connect
from pipeline.store.sql.accounts import accounts, parts_of_run
from stages.tables.pages import Page
from tests.pipeline.store.test_views import values
from tests.support.runs.warehouse import Warehouse, answer, chunk, document, document_unit, step

DOCUMENTS, PAGES, ANSWERS = step("documents"), step("pages"), step("answers", "full_text")


def plan_everything(warehouse: Warehouse, leave_out: str = "") -> None:
    """Four documents (fine, bad, skipped, without a shard) and questions of every outcome."""
    units = [document_unit(DOCUMENTS, name) for name in ("d1", "d2", "d3", "d4")]
    documents = [document("d1"), document("d2", problem="bad_input", skipped=True),  # counts once
                 document("d3", skipped=True)]  # fmt: skip
    for unit, row in zip(units[:3], documents, strict=True):
        warehouse.commit(DOCUMENTS, unit, [row])
    done = chunk(ANSWERS, "d1", "q1", "q2", "q3")
    answers = [answer("q1"), answer("q2", answer=None, problem="timeout"),
               answer("q3", answer=None, skipped=True)]  # fmt: skip
    warehouse.commit(ANSWERS, done, [row for row in answers if row.question_id != leave_out])
    warehouse.plan("r", (DOCUMENTS, units), (ANSWERS, [done, chunk(ANSWERS, "d4", "q4", "q5")]))


def counted(warehouse: Warehouse) -> dict[str, tuple[int, ...]]:
    columns = "step_id, inputs, ok, problem, skipped, not_done"
    counts = values(warehouse, f"select {columns} from accounting")
    return {step_id.rpartition("-")[0]: tuple(numbers) for step_id, *numbers in counts}


def test_accounts_by_hand(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large run is counted step by step. `steps` and `runs` say what made the rows."""
    plan_everything(warehouse)
    assert counted(warehouse) == {"documents": (4, 1, 1, 1, 1), "answer": (5, 1, 1, 1, 2)}
    with connect(warehouse.folder) as connection:
        whole = accounts(connection)
        assert [(step.inputs, step.not_done) for step in whole] == [(5, 2), (4, 1)]
        monkeypatch.setattr("pipeline.store.sql.accounts._MOST_INPUTS", 0)
        assert len([*parts_of_run(connection)]) == len(whole) > 1
        assert accounts(connection) == whole
    columns = "step_id, method, repeat, settings"
    (row,) = values(warehouse, f"select {columns} from steps where stage = 'answer'")
    assert row == (ANSWERS.id, "full_text", 0, '{"words": 40}')
    (row,) = values(warehouse, "select run, inputs, calls from runs where stage = 'answer'")
    assert row == ("r", 5, 0)


def test_a_row_that_is_missing_breaks_the_accounts(warehouse: Warehouse) -> None:
    plan_everything(warehouse, leave_out="q3")
    assert counted(warehouse)["answer"] == (5, 1, 1, 0, 2)
    lost = r"5 inputs, but 4 .*; unit \w+ has no row of question 'q3' of document 'd1'"
    with connect(warehouse.folder) as connection, pytest.raises(AccountingError, match=lost):
        accounts(connection)


def test_a_row_that_stands_twice_breaks_the_accounts(warehouse: Warehouse) -> None:
    unit = chunk(ANSWERS, "d1", "q1")
    warehouse.commit(ANSWERS, unit, [answer("q1"), answer("q1")])
    warehouse.plan("r", (ANSWERS, [unit]))
    twice = r"answers: 2 rows .*, in unit \w+ of answer-"
    with connect(warehouse.folder) as connection, pytest.raises(AccountingError, match=twice):
        accounts(connection)


def test_a_document_of_many_pages_is_one_input(warehouse: Warehouse) -> None:
    """Two fallbacks, three choices, and two pages that nobody was asked about: 2 of 5 fell back. A
    step without shards is not done."""
    chosen = ["model", "fallback", "model", "rule", "fallback", "model", "end"]
    pages = [Page.about(document(), page_index=n, chosen_by=by) for n, by in enumerate(chosen)]
    warehouse.commit(PAGES, unit := document_unit(PAGES, "d1"), pages)
    asked = chunk(ANSWERS, "d1", "q1", "q2")
    warehouse.plan("r", (PAGES, [unit, document_unit(PAGES, "d2")]), (ANSWERS, [asked]))
    assert counted(warehouse) == {"paginate": (2, 1, 0, 0, 1), "answer": (2, 0, 0, 0, 2)}
    (row,) = values(warehouse, "select step_id, memory, stage, asked, fell_back from fallbacks")
    assert row == (PAGES.id, PAGES.memory, "paginate", 5, 2)
