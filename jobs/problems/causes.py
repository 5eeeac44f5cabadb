"""The problems of a run by cause, with advice; findings about its models' replies."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jobs.output.print_tables import counted, on_one_line
from pipeline.asking.reply_health import findings
from pipeline.core.sql_files import filled, sql_beside
from pipeline.store.sql.connection import query

_SQL = sql_beside(__file__)
_COLUMNS = ("method", "memory", "document_id", "question_id", "detail")
_LOADED = ("documents", "questions")  # tables of the corpus
Rows = list[dict[str, Any]]
_REPLIES = "from reply_health order by stage, method, repeat, prompt"
_MOST_CHARS = 120  # of a detail
_PLACE = re.compile(r'^  File "([^"]+)", line (\d+)', re.MULTILINE)
_AGAIN = "gistmill retry asks again"
_ADVICE: Mapping[str, str] = {
    "truncated": f"raise the prompt's reply_tokens.PROMPT=; {_AGAIN}",
    "unparseable": f"{_AGAIN}; reply_format=constrained allows no other reply",
    "no_answer": "gistmill trace QUESTION shows where the method ended",
    "out_of_range": f"{_AGAIN}; reply_format=constrained allows no other reply",
    "context_overflow": "take a longer context, or shorter pages (memory.words=)",
    "empty_input": "give the text words, or leave it out of the corpus",
    "timeout": f"raise engine.deadline_seconds=; {_AGAIN}",
    "refused": f"see the status that calls.reply begins with; {_AGAIN}",
    "engine_failed": f"see the engine's log; {_AGAIN}",
    "unit_failed": f"see the error; {_AGAIN}",
    "bad_input": "then run the same command again",
}


def causes(connection: Any, where: str = "true") -> Rows:
    """A row per stage and problem that no other problem caused, most rows first.

    `num_rows` are its own rows, `num_after` those with the problem `upstream` because of it,
    `detail` is its first detail; `documents` and `questions` are the ids that it reached. `where`:
    SQL over document_id and question_id.
    """
    parts = []  # a table's rows with a problem, with all of _COLUMNS
    for table, columns in _tables(connection).items():
        named = [f"t.{n}" if n in columns else f"null::varchar as {n}" for n in _COLUMNS]
        is_made = table not in _LOADED and "step_id" in columns
        step = "left join steps s using (step_id)" if is_made else ""
        stage = "coalesce(s.stage, 'corpus')" if is_made else "'corpus'"
        selected = ", ".join([f"{stage} as stage", f"'{table}' as table_name", *named, "t.problem"])
        parts.append(f"select {selected} from {table} t {step} where t.problem is not null")
    if not parts:
        return []
    connection.execute(filled(_SQL["failed"], parts=" union all ".join(parts), where=where))
    connection.execute(_SQL["own_causes"])
    return query(connection, _SQL["causes"])


def question_problems(connection: Any) -> Rows:
    """A row per question, method and problem, in this order."""
    parts = [
        f"select question_id, method, problem from {table} where problem is not null"
        for table, columns in _tables(connection).items()
        if {"question_id", "method"} <= columns
    ]
    return query(connection, f"{' union '.join(parts)} order by all") if parts else []


def _tables(connection: Any) -> dict[str, set[str]]:
    return {row["table_name"]: set(row["columns"]) for row in query(connection, _SQL["tables"])}


def reply_findings(connection: Any, facts: Mapping[str, Any]) -> list[str]:
    """Lines by stage; `facts`: the run's. Options chosen without a call count as the run's
    engine's."""
    models: Mapping[str, bool] = facts.get("models", {})
    if not models and not facts.get("is_model"):
        return []
    lines: dict[str, None] = {}
    for row in query(connection, _REPLIES):
        if row["stage"] in models or (row["prompt"] is None and facts.get("is_model")):
            of_row = findings(row, models.get(row["stage"], False)).values()
            lines |= dict.fromkeys(map(on_one_line, of_row))
    return [*lines]


def cause_lines(connection: Any) -> Iterator[str]:
    """A line per cause: its rows, questions and documents, an example and advice."""
    for cause in causes(connection):
        after = f" and {cause['num_after']} after" if cause["num_after"] else ""
        reached = counted(len(cause["documents"] or ()), "document")
        if cause["questions"]:
            reached = f"{counted(len(cause['questions']), 'question')} of {reached}"
        size = f"{counted(cause['num_rows'], 'row')}{after}, {reached}"
        such_as = f", such as: {_example(cause['detail'])[:_MOST_CHARS]}" if cause["detail"] else ""
        advice = _ADVICE.get(cause["problem"], "gistmill trace QUESTION shows it")
        yield f"{cause['problem']} in {cause['stage']}: {size}{such_as}; {advice}"


def _example(detail: str) -> str:
    """A detail on one line; of a traceback only the error, and the line of code that raised it."""
    places = _PLACE.findall(detail)
    if not places or not detail.startswith("Traceback"):
        return on_one_line(detail)
    file, line = places[-1]
    return f"{on_one_line(detail.splitlines()[-1])} ({Path(file).name}:{line})"
