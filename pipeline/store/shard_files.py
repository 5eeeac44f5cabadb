"""The files of shards: their names in tables/, and their content."""

import io
import json
import os
import re
import socket
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

import pyarrow.parquet as pq
from upath import UPath

from pipeline.arrow import to_arrow
from pipeline.place import is_remote, listed
from pipeline.retries import retried
from pipeline.rows import Record, utc_now
from pipeline.steps import Step
from pipeline.store.footers import PROBLEMS, ROWS_WRITTEN
from pipeline.units import Unit

STARTED_AT, WORKER = "gistmill.started_at", "gistmill.worker"  # of the unit, in its footer
_NAME = re.compile(r"(?P<unit>[0-9a-f]+)\.(?P<attempt>[1-9]\d{0,8})\.parquet")
_ABSENT = (FileNotFoundError, NotADirectoryError)


def content(
    record: type[Record],
    step: Step,
    unit: Unit,
    rows: Sequence[Record],
    started_at: datetime | None = None,
) -> bytes:
    """The Parquet content of a shard; `started_at` as in `commit`."""
    arrow = to_arrow(record, rows, [_stamps(step, unit, row) for row in rows])
    footer = {
        ROWS_WRITTEN: str(arrow.num_rows),
        PROBLEMS: json.dumps(Counter(row.problem for row in rows if row.problem)),
        STARTED_AT: (started_at or utc_now()).isoformat(),
        WORKER: process_name(),
    }
    return parquet(arrow.replace_schema_metadata(footer))


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


def parquet(arrow: Any) -> bytes:
    """An Arrow table as the content of a Parquet file."""
    buffer = io.BytesIO()
    pq.write_table(arrow, buffer, compression="zstd")
    return buffer.getvalue()


def process_name() -> str:
    """What names this process among all that write to a warehouse: its host and its number."""
    return f"{socket.gethostname()}-{os.getpid()}"


def file_names(folder: UPath) -> list[str]:
    """The names of the files in a step's folder of a table; none where there is no such folder."""
    if is_remote(folder):
        return [file.name for file in listed(folder)]
    with suppress(*_ABSENT):  # of 100,000 files, ten times faster than paths
        return retried(lambda: os.listdir(str(folder)), folder, _ABSENT)  # noqa: PTH208
    return []


def last_attempts(names: Iterable[str]) -> dict[str, tuple[int, str]]:
    """unit -> the highest attempt and its shard. Files named otherwise are left out."""
    found: dict[str, tuple[int, str]] = {}
    for name in names:
        if named := shard_name(name):
            unit, attempt = named
            found[unit] = max(found.get(unit, (0, "")), (attempt, name))
    return found


def shard_name(name: str) -> tuple[str, int] | None:
    """The unit and the attempt of a shard's name; null for another file's."""
    named = _NAME.fullmatch(name)
    return (named["unit"], int(named["attempt"])) if named else None
