"""What a run complains of: a line per cause of its problems."""

import json
import shlex
from dataclasses import replace
from pathlib import Path

from jobs.graph.resolved_run import read_run
from jobs.run.launch import exceeded_limits
from pipeline.store import connect
from pipeline.store.runs.run_folder import RunFolder
from pipeline.store.sql.accounts import accounts
from tests.support.command import sql, succeed
from tests.support.runs.warehouse import Warehouse, answer, chunk, score, step

ANSWERS = step("answers", "full_text")
# By question, with the problem of its answer: d1 has three, d2 two, d3 and d4 one, d5 none.
PROBLEMS: dict[str, dict[str, str | None]] = {
    "d1": {"q1": "timeout", "q2": "timeout", "q3": "unparseable"},
    "d2": {"q4": "timeout", "q5": "truncated"},
    "d3": {"q6": "timeout"},
    "d4": {"q7": "timeout"},
    "d5": {"q8": None},
}


def said(warehouse: Warehouse, *words: str) -> list[str]:
    resolved = read_run([f"warehouse={warehouse.folder}", "run=r", *words])
    with connect(warehouse.folder, "r") as connection:
        return list(exceeded_limits(connection, accounts(connection), resolved))


def test_a_cause_is_a_line_with_how_many_and_what_to_do(tmp_path: Path) -> None:
    warehouse, units = Warehouse(tmp_path), []
    for document_id, problems in PROBLEMS.items():
        units.append(chunk(ANSWERS, document_id, *problems))
        rows = [answer(q, document_id, problem=problem) for q, problem in problems.items()]
        warehouse.commit(ANSWERS, units[-1], rows)
    warehouse.plan("r", (ANSWERS, units))
    assert said(warehouse, "max_problem_rate=0.875") == [], "as many as allowed"
    *lines, command = said(warehouse, "max_problem_rate=0.5")
    assert lines == [
        "timeout in answer: 5 rows, 5 questions of 4 documents; raise engine.deadline_seconds=; "
        "gistmill retry asks again",
        "truncated in answer: 1 row, 1 question of 1 document; raise the prompt's "
        "reply_tokens.PROMPT=; gistmill retry asks again",
        "unparseable in answer: 1 row, 1 question of 1 document; gistmill retry asks again; "
        "reply_format=constrained allows no other reply",
    ]
    RunFolder(tmp_path, "r").start({"report": {"stages": ["answer"]}}, {}, True)
    where = [f"warehouse={tmp_path}", "run=r"]
    assert json.loads(succeed("status", "--json", *where))["problems"] == lines
    limit, _, listing = command.partition("; all of them: gistmill ")
    assert limit == "in 1 step more than max_problem_rate=0.5 of the inputs have a problem"
    verb, query, *words = shlex.split(listing)
    assert (verb, words) == ("sql", where)
    listed = {row["question_id"]: row["problem"] for row in sql(tmp_path, query)}
    assert listed == {q: p for problems in PROBLEMS.values() for q, p in problems.items() if p}


def test_consequences_are_in_the_line_of_their_cause(tmp_path: Path) -> None:
    made = Warehouse(tmp_path)
    scores = step("scores", "full_text")
    answered, scored = chunk(ANSWERS, "d1", "q1", "q2"), chunk(scores, "d1", "q1", "q2")
    made.commit(ANSWERS, answered, [answer("q1", problem="timeout"), answer("q2")])
    after = replace(score("q1", "squad_em", 0.0), problem="upstream", detail="answer: timeout")
    made.commit(scores, scored, [after, score("q2", "squad_em", 0.0)])
    made.plan("r", (ANSWERS, [answered]), (scores, [scored]))
    line, _ = said(made)
    assert line.startswith("timeout in answer: 1 row and 1 after, 1 question of 1 document; ")
