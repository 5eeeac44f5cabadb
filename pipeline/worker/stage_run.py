"""Run a stage on the rows of one unit, and on those that another stage still makes.

Rows that were read as they were made are compared with the committed ones. Another worker may have
committed other rows, and an upstream stage may fail after its first rows: then the stage is run
again on what is committed, and of its replies those are used that answer the same requests.
"""

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, NamedTuple

from pipeline.asking.ask import Ask
from pipeline.core.errors import (
    AccountingError,
    EngineError,
    OutageError,
    Problem,
    StorageError,
    contained,
)
from pipeline.core.rows import Document, Question, Record, UnitRows
from pipeline.work.input_hashes import mask_fields
from pipeline.work.made_rows import unmatched_rows, wrong_rows
from pipeline.work.row_stream import RowStream
from pipeline.work.stage import Stage
from pipeline.work.units import Unit

Rows = tuple[Any, ...]
Streams = Mapping[type[Record], RowStream]


class _Failure(NamedTuple):
    problem: Problem
    detail: str


def stage_input(
    stage: Stage, unit: Unit, tables: Mapping[type[Record], Rows], coming: Streams
) -> UnitRows:
    """The input of a stage: the unit's rows in `tables`, those of document and questions among
    them, and those in `coming`. Raises AccountingError if a question is missing."""
    (document,) = tables[Document]
    questions = tables.get(Question, ())
    if {question.question_id for question in questions} != set(unit.inputs):
        raise AccountingError(f"{unit.step_id}/{unit.unit}: some of its questions are missing")
    return UnitRows(
        document=mask_fields(document, stage.document_fields),
        questions=tuple(mask_fields(question, stage.question_fields) for question in questions),
        tables={kind: rows for kind, rows in tables.items() if kind not in (Document, Question)},
        coming=coming,
    )


async def run_early(stage: Stage, rows: UnitRows, ask: Ask) -> Sequence[Record] | None:
    """The stage's rows, made of rows that are still coming; None if it raises, as it will be run on
    the committed ones."""
    made = await _tried(stage.run(rows, ask))
    return None if isinstance(made, _Failure) else made


async def is_as_committed(came: UnitRows, committed: UnitRows) -> bool:
    """True if the rows that came are those that are committed."""
    streams = {kind: tuple([row async for row in came.as_made(kind)]) for kind in came.coming}
    return all(rows == committed[kind] for kind, rows in streams.items())


async def run_stage(
    stage: Stage, rows: UnitRows, ask: Ask, early: Sequence[Record] | None = None
) -> Rows:
    """The stage's rows, those that it has made `early` of equal ones; if an input is unusable, the
    stage raises or its rows are wrong, a row with a problem per input."""
    made = await _tried(_checked(stage, rows, ask, early))
    if isinstance(made, _Failure):
        made = await _tried(_failed(stage, rows, made))
    if isinstance(made, _Failure):  # `failed` is the plugin's, too
        made = Stage.failed(stage, rows, *made)
    return tuple(made)


async def _checked(
    stage: Stage, rows: UnitRows, ask: Ask, early: Sequence[Record] | None
) -> Sequence[Record] | _Failure:
    if reason := stage.why_unusable(rows):
        return _Failure("upstream", reason)
    made = await stage.run(rows, ask) if early is None else early
    why = wrong_rows(stage, rows, made) or unmatched_rows(stage, rows, made)
    return _Failure("unit_failed", why) if why else made


async def _failed(stage: Stage, rows: UnitRows, why: _Failure) -> Sequence[Record] | _Failure:
    made = stage.failed(rows, *why)
    if wrong := wrong_rows(stage, rows, made):
        return _Failure("unit_failed", f"{wrong} (from its `failed`, after: {why.detail})")
    return made


async def _tried(making: Awaitable[Sequence[Record] | _Failure]) -> Sequence[Record] | _Failure:
    """The rows, or why there are none."""
    with contained(EngineError, OutageError, AccountingError, StorageError) as raised:
        return await making
    return _Failure("unit_failed", raised.trace())
