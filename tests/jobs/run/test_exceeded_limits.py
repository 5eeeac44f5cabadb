"""What a run complains of: it names the step, the commonest problem and the worst documents."""

import shlex
from pathlib import Path
from typing import Any

import pytest

from jobs.graph.read_run import read_run
from jobs.run.exceeded_limits import exceeded_limits
from pipeline.store import connect
from pipeline.store.sql.accounts import accounts
from tests.support.command import sql
from tests.support.runs.warehouse import Warehouse, answer, chunk, step

ANSWERS = step("answers", "full_text")
# By question, with the problem of its answer: d1 has three, d2 two, d3 and d4 one, d5 none.
PROBLEMS: dict[str, dict[str, str | None]] = {
    "d1": {"q1": "timeout", "q2": "timeout", "q3": "unparseable"},
    "d2": {"q4": "timeout", "q5": "truncated"},
    "d3": {"q6": "timeout"},
    "d4": {"q7": "timeout"},
    "d5": {"q8": None},
}


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    made = Warehouse(tmp_path)
    units = []
    for document_id, problems in PROBLEMS.items():
        units.append(chunk(ANSWERS, document_id, *problems))
        rows: Any = [
            answer(question, document_id=document_id, problem=problem)
            for question, problem in problems.items()
        ]
        made.commit(ANSWERS, units[-1], rows)
    made.plan("r", (ANSWERS, units))
    return made


def said(warehouse: Warehouse, *words: str) -> list[str]:
    resolved = read_run([f"warehouse={warehouse.folder}", "run=r", *words])
    with connect(warehouse.folder, "r") as connection:
        return list(exceeded_limits(connection, accounts(connection), resolved))


def test_more_problems_than_allowed_name_the_worst(warehouse: Warehouse) -> None:
    (line,) = said(warehouse, "max_problem_rate=0.5")
    start, _, command = line.partition("; all of them: gistmill ")
    assert start == (
        f"{ANSWERS.id} full_text: 7 of 8 inputs have a problem (max_problem_rate=0.5); most often "
        "timeout (5); most rows with a problem: d1 (3), d2 (2), d3 (1)"
    )
    _, query, *words = shlex.split(command)
    assert words == [f"warehouse={warehouse.folder}", "run=r"]
    rows = sql(warehouse.folder, query)
    assert {(row["document_id"], row["question_id"]): row["problem"] for row in rows} == {
        (document_id, question): problem
        for document_id, problems in PROBLEMS.items()
        for question, problem in problems.items()
        if problem
    }


def test_one_row_says_what_is_wrong(tmp_path: Path) -> None:
    made = Warehouse(tmp_path)
    advice = f"budget=9: 12 tokens{chr(10)}are too many; raise it {'!' * 99}"
    unit = chunk(ANSWERS, "d1", "q1")
    made.commit(ANSWERS, unit, [answer("q1", problem="context_overflow", detail=advice)])
    made.plan("r", (ANSWERS, [unit]))
    (line,) = said(made)
    said_of_it = (
        f"; most often context_overflow (1), such as: {advice[:120].replace(chr(10), '?')}; most"
    )
    assert said_of_it in line


def test_as_many_as_allowed_are_no_complaint(warehouse: Warehouse) -> None:
    assert said(warehouse, "max_problem_rate=0.875") == []
