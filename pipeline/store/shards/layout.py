"""The layout of a warehouse: its number, its folders, the content of a shard, names of memories.

<warehouse>/gistmill.json states {"layout": N}; without the file it is 1. Raise LAYOUT when an
earlier gistmill would misread what a run writes.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, replace
from datetime import datetime
from typing import Any

from pydantic import BaseModel, StrictInt
from upath import UPath

from pipeline.core.errors import UsageError, redacted
from pipeline.core.rows import Record, schema, to_arrow, utc_now
from pipeline.files.parquet import parquet_content
from pipeline.files.storage import process_name, write
from pipeline.store.shards.damaged_files import ROWS_WRITTEN, read_parsed
from pipeline.work.units import Step, Unit

LAYOUT = 2
FILE = "gistmill.json"
# `readers`: version 0.2 made it
FOLDERS = ("tables", "compacted", "steps", "runs", "shared", "journal", "removed", "readers")

SHARED = "shared"  # the name of the run's own memory; with other settings: shared [memory=uniform]
WHOLE_TEXT = "text"  # the memory's name in rows made from the document itself, without pages

# In a shard's footer, beside ROWS_WRITTEN: how many rows have which problem (JSON), and when and by
# which worker its unit was made.
PROBLEMS = "gistmill.problems"
STARTED_AT, WORKER = "gistmill.started_at", "gistmill.worker"
# The columns that rows are searched by have statistics in Parquet. Statistics of long texts would
# take memory.
SEARCHED = ["step_id", "unit", "document_id", "question_id", "input_sha", "method"]
# zstd and dictionaries would take half of the CPU time of writing a small shard; compaction uses
# them.
_QUICKLY = {"compression": "lz4", "use_dictionary": False, "write_statistics": SEARCHED}
_GROUP_CHARS = 8_000_000  # of a row group: to make it takes several times as much memory


class _Stated(BaseModel):
    layout: StrictInt


def check_layout(warehouse: UPath) -> int:
    """The warehouse's layout. Raises UsageError if a later gistmill made it, DamagedError if the
    file does not state a layout."""
    stated = read_parsed(warehouse / FILE, _Stated.model_validate_json)
    layout = stated.layout if stated else 1
    if layout > LAYOUT:
        raise UsageError(
            f"{warehouse}: made by a later gistmill (layout {layout}, this one knows {LAYOUT}); "
            "update, or name another warehouse"
        )
    return layout


def raise_layout(warehouse: UPath) -> None:
    """Write that the warehouse has today's layout. Raises as `check_layout` does."""
    if check_layout(warehouse) < LAYOUT:
        write(warehouse / FILE, json.dumps({"layout": LAYOUT}).encode())


def of_repeat(memory: str, repeat: int) -> str:
    """The name of a memory in a repeat, if each repeat has one of its own."""
    return f"{memory} (repeat {repeat})" if repeat else memory


def is_shared_sql(column: str) -> str:
    """The SQL condition that a memory is the run's own, in whichever repeat."""
    starts = (f"starts_with({column}, '{SHARED} {sign}')" for sign in ("(repeat ", "["))
    return f"({column} = '{SHARED}' or {' or '.join(starts)})"


def shard_content(
    record: type[Record],
    step: Step,
    unit: Unit,
    rows: Sequence[Record],
    started_at: datetime | None = None,
) -> bytes:
    """The Parquet content of a shard; `started_at`: of the unit (UTC), by default now."""
    stamps = {"corpus": step.corpus, "step_id": step.id, "unit": unit.unit,
              "method": step.method, "repeat": step.repeat, "memory": step.memory}  # fmt: skip
    footer = {
        ROWS_WRITTEN: str(len(rows)),
        PROBLEMS: json.dumps(Counter(row.problem for row in rows if row.problem)),
        STARTED_AT: (started_at or utc_now()).isoformat(),
        WORKER: process_name(),
    }

    def table(group: Sequence[Record]) -> Any:
        shas = [unit.inputs.get(getattr(row, "question_id", "")) for row in group]
        return to_arrow(record, group, [{**stamps, "input_sha": sha} for sha in shas])

    columns = schema(record).with_metadata(footer)
    return parquet_content(columns, map(table, _groups(rows)), **_QUICKLY)


def _groups(rows: Iterable[Any]) -> Iterator[list[Any]]:
    """The rows, without secrets, in groups of about _GROUP_CHARS characters; at least one group."""
    group: list[Any] = []
    num_chars = 0
    for row in rows:
        if num_chars >= _GROUP_CHARS:
            yield group
            group, num_chars = [], 0
        detail = getattr(row, "detail", None)
        group.append(replace(row, detail=redacted(detail)) if detail else row)
        values = [getattr(row, field.name) for field in fields(row)]
        values += [sent["content"] for sent in getattr(row, "messages", None) or ()]
        num_chars += sum(len(value) for value in values if isinstance(value, str))
    yield group
