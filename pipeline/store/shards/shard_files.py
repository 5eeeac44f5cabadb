"""The files of shards: their names in tables/, and their content."""

import io
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any

import pyarrow.parquet as pq
from upath import UPath

from pipeline.core.arrow import to_arrow
from pipeline.core.redaction import redacted
from pipeline.core.rows import Record, utc_now
from pipeline.files.place import is_remote, list_paths
from pipeline.files.process import process_name
from pipeline.files.storage_retries import with_retries
from pipeline.store.shards.footers import PROBLEMS, ROWS_WRITTEN
from pipeline.work.steps import Step
from pipeline.work.units import Unit

STARTED_AT, WORKER = "gistmill.started_at", "gistmill.worker"  # of the unit, in its footer
_NAME = re.compile(r"(?P<unit>[0-9a-f]+)\.(?P<attempt>[1-9]\d{0,8})\.parquet")
_ABSENT = (FileNotFoundError, NotADirectoryError)


def shard_content(
    record: type[Record],
    step: Step,
    unit: Unit,
    rows: Sequence[Record],
    started_at: datetime | None = None,
) -> bytes:
    """The Parquet content of a shard; `started_at` as in `commit`."""
    rows = [_with_redacted_detail(row) for row in rows]
    arrow = to_arrow(record, rows, [_stamps(step, unit, row) for row in rows])
    footer = {
        ROWS_WRITTEN: str(arrow.num_rows),
        PROBLEMS: json.dumps(Counter(row.problem for row in rows if row.problem)),
        STARTED_AT: (started_at or utc_now()).isoformat(),
        WORKER: process_name(),
    }
    return parquet_content(arrow.replace_schema_metadata(footer))


def _with_redacted_detail(row: Any) -> Any:
    detail = getattr(row, "detail", None)
    return replace(row, detail=redacted(detail)) if detail else row


def _stamps(step: Step, unit: Unit, row: Record) -> dict[str, Any]:
    question_id = getattr(row, "question_id", None)
    return {
        "corpus": step.corpus,
        "step_id": step.id,
        "unit": unit.unit,
        "method": step.method,
        "repeat": step.repeat,
        "memory": step.memory,
        "input_sha": unit.inputs.get(question_id) if question_id else None,
    }


def parquet_content(arrow: Any) -> bytes:
    """An Arrow table as the content of a Parquet file."""
    buffer = io.BytesIO()
    pq.write_table(arrow, buffer, compression="zstd")
    return buffer.getvalue()


def file_names(folder: UPath) -> list[str]:
    """The names of the files in a step's folder of a table; empty if there is no such folder."""
    if is_remote(folder):
        return [file.name for file in list_paths(folder)]
    with suppress(*_ABSENT):  # ten times faster than paths for 100,000 files
        return with_retries(lambda: os.listdir(str(folder)), folder, _ABSENT)  # noqa: PTH208
    return []


def last_attempts(names: Iterable[str]) -> dict[str, tuple[int, str]]:
    """unit -> its highest attempt and the name of that shard. Other file names are left out."""
    found: dict[str, tuple[int, str]] = {}
    for name in names:
        if named := shard_name(name):
            unit, attempt = named
            found[unit] = max(found.get(unit, (0, "")), (attempt, name))
    return found


def shard_name(name: str) -> tuple[str, int] | None:
    """The unit and the attempt in a shard's name; None for the name of another file."""
    named = _NAME.fullmatch(name)
    return (named["unit"], int(named["attempt"])) if named else None
