"""The content of shards: Parquet files of one unit's rows each."""

import dataclasses
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from pipeline.core.arrow import schema, to_arrow
from pipeline.core.redaction import redacted
from pipeline.core.rows import Record, utc_now
from pipeline.files.parquet import parquet_content
from pipeline.files.processes import process_name
from pipeline.work.units import Step, Unit

# In a shard's footer: the number of its rows, and how many have which problem (JSON).
ROWS_WRITTEN, PROBLEMS = "gistmill.num_rows", "gistmill.problems"
STARTED_AT, WORKER = "gistmill.started_at", "gistmill.worker"  # of its unit
# Columns without which a row cannot be identified.
OF_EVERY_TABLE = ("step_id", "unit", "document_id")
OF_QUESTIONS = ("question_id", "input_sha")
# Parquet has statistics of them: rows are searched by them. Those of long texts take memory.
SEARCHED = [*OF_EVERY_TABLE, *OF_QUESTIONS, "method"]
# Most shards are small: zstd and dictionaries would take half of the CPU time to write one. That is
# for compaction, of many together.
_QUICKLY = {"compression": "lz4", "use_dictionary": False, "write_statistics": SEARCHED}
_GROUP_CHARS = 8_000_000  # of a row group: to make it takes several times as much memory


def shard_content(
    record: type[Record],
    step: Step,
    unit: Unit,
    rows: Sequence[Record],
    started_at: datetime | None = None,
) -> bytes:
    """The Parquet content of a shard; `started_at`: of the unit (UTC), by default now."""
    stamps = {
        "corpus": step.corpus,
        "step_id": step.id,
        "unit": unit.unit,
        "method": step.method,
        "repeat": step.repeat,
        "memory": step.memory,
    }
    footer = {
        ROWS_WRITTEN: str(len(rows)),
        PROBLEMS: json.dumps(Counter(row.problem for row in rows if row.problem)),
        STARTED_AT: (started_at or utc_now()).isoformat(),
        WORKER: process_name(),
    }
    groups = map(partial(_table, record, unit, stamps), _groups(rows))
    columns = schema(record).with_metadata(footer)
    return parquet_content(columns, groups, **_QUICKLY)


def _table(record: type[Record], unit: Unit, stamps: dict[str, Any], rows: Sequence[Record]) -> Any:
    shas = [unit.inputs.get(getattr(row, "question_id", "")) for row in rows]
    return to_arrow(record, rows, [{**stamps, "input_sha": sha} for sha in shas])


def _groups(rows: Iterable[Record]) -> Iterator[list[Record]]:
    """The rows, without secrets, in groups of about _GROUP_CHARS characters; at least one group."""
    group: list[Record] = []
    left = _GROUP_CHARS
    for row in map(_with_redacted_detail, rows):
        if left <= 0:
            yield group
            group, left = [], _GROUP_CHARS
        group.append(row)
        left -= _num_chars(row)
    yield group


def _num_chars(row: Any) -> int:
    values = (getattr(row, field.name) for field in dataclasses.fields(row))
    num_chars = sum(len(value) for value in values if isinstance(value, str))
    return num_chars + sum(len(sent["content"]) for sent in getattr(row, "messages", None) or ())


def _with_redacted_detail(row: Any) -> Any:
    detail = getattr(row, "detail", None)
    return dataclasses.replace(row, detail=redacted(detail)) if detail else row
