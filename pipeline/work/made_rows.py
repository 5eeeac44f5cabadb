"""Check the rows that a stage returned, before they are committed: a plugin may return anything."""

from collections.abc import Sequence
from typing import Any

from pipeline.core.arrow import wrong_value
from pipeline.core.errors import AccountingError
from pipeline.core.rows import Record, UnitRows
from pipeline.work.class_checks import file_of
from pipeline.work.stage import Stage


def wrong_rows(stage: Stage, rows: UnitRows, made: Any) -> str | None:
    """Say which row is wrong, and why, naming the stage's file: its class, a column's value, an id
    that is not of the unit, or a key that another has, too. None if none is."""
    record = stage.writes
    if not isinstance(made, list | tuple):
        return _of(stage, f"returned {type(made).__name__}, not a list of {record.__name__}")
    for place, row in enumerate(made):
        if type(row) is not record:
            name = type(row).__name__
            return _of(stage, f"row {place} is of class {name}, not {record.__name__}")
    why = wrong_value(record, made) or _wrong_key(record, rows, made)
    return _of(stage, f"{record.table}: {why}") if why else None


def unmatched_rows(stage: Stage, rows: UnitRows, made: Sequence[Record]) -> str | None:
    """Say what `Stage.check` finds wrong, naming the stage's file; None if nothing is."""
    try:
        stage.check(rows, made)
    except AccountingError as error:
        return _of(stage, str(error))
    return None


def _of(stage: Stage, why: str) -> str:
    return f"{file_of(type(stage))}: stage {stage.label()}: {why}"


def _wrong_key(record: type[Record], rows: UnitRows, made: Sequence[Record]) -> str | None:
    asked = {question.question_id for question in rows.questions}
    seen = set()
    for place, row in enumerate(made):
        question = getattr(row, "question_id", None)
        if row.document_id != rows.document.document_id or not {question} <= asked | {None}:
            return f"row {place}: {question or row.document_id!r} is not an input of this unit"
        key = tuple(getattr(row, name) for name in record.key)
        if key in seen:
            return f"row {place}: a row before it has the same {', '.join(record.key)}"
        seen.add(key)
    return None
