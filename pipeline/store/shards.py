"""Shards: one Parquet file per unit and table, committed once: the first commit wins.

<warehouse>/tables/<table>/<step_id>/<unit>.<attempt>.parquet; a retry writes the next attempt, and
the highest one counts. A shard's footer holds the number of rows written, so that `verify` notices
rows lost or doubled afterwards, the counts of their problems, the worker that wrote them, and when
it started on them.
"""

import io
import json
import os
import re
import socket
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from upath import UPath

from pipeline.arrow import from_arrow, to_arrow
from pipeline.calls import UNANSWERED
from pipeline.errors import AccountingError, UsageError
from pipeline.place import AnyPath, commit, each, place, write
from pipeline.rows import Call, Record, utc_now
from pipeline.steps import Step
from pipeline.units import Committed, Unit, unit_name

R = TypeVar("R", bound=Record)
_NAME = re.compile(r"(?P<unit>[0-9a-f]+)\.(?P<attempt>[1-9]\d{0,8})\.parquet")
_ROWS_WRITTEN, _PROBLEMS = "gistmill.num_rows", "gistmill.problems"
STARTED_AT, WORKER = "gistmill.started_at", "gistmill.worker"  # of the unit, in its footer


class Shards:
    """Reads and commits the shards of one warehouse."""

    def __init__(self, warehouse: AnyPath) -> None:
        self.warehouse = place(warehouse)

    def path(self, table: str, step_id: str, unit: str, attempt: int = 1) -> UPath:
        return self.warehouse / "tables" / table / step_id / f"{unit}.{attempt}.parquet"

    def units(self, table: str, step_id: str) -> dict[str, int]:
        """The units of a step whose shard in `table` is committed, with their highest attempt."""
        folder = self.warehouse / "tables" / table / step_id
        return {
            unit: attempt for (_, unit), (attempt, _) in last_attempts(folder.glob("*")).items()
        }

    def commit(
        self,
        record: type[Record],
        step: Step,
        unit: Unit,
        rows: Sequence[Record],
        started_at: datetime | None = None,
    ) -> bool:
        """Write a shard unless it exists: the first commit wins. True if this call wrote it.
        `started_at` is when the unit was started (UTC), by default now."""
        path = self.path(record.table, step.id, unit.unit, unit.attempt)
        return commit(path, content(record, step, unit, rows, started_at))

    def load(self, record: type[R], step_id: str, unit: str, attempt: int = 1) -> tuple[R, ...]:
        """The rows of a committed shard, in the order they were written."""
        return from_arrow(record, _read(self.path(record.table, step_id, unit, attempt)))

    def num_bytes(self, table: str, step_id: str, unit: str, attempt: int = 1) -> int:
        """The size of a committed shard's rows in memory."""
        footer = _footer(self.path(table, step_id, unit, attempt))
        return sum(footer.row_group(i).total_byte_size for i in range(footer.num_row_groups))

    def recorded(self, step_id: str, unit: str, attempt: int = 1) -> tuple[Call, ...] | None:
        """The calls of an attempt at a unit; null where its calls shard is not committed."""
        if not self.path("calls", step_id, unit, attempt).is_file():
            return None
        return self.load(Call, step_id, unit, attempt)

    def committed(self, steps: Sequence[Step]) -> Committed:
        """The committed units of `steps`. Raises AccountingError where a shard lacks rows."""
        units = {step.id: self.units(step.table, step.id) for step in steps}
        inputs = {
            step.id: self._inputs(step, units[step.id]) for step in steps if step.per_question
        }
        return Committed(units=units, inputs=inputs, problems=self._verified(steps))

    def _inputs(self, step: Step, units: Mapping[str, int]) -> dict[str, str]:
        """input_sha -> the unit that holds it; of two units, the lower name."""
        names = sorted(units, reverse=True)
        paths = [self.path(step.table, step.id, unit, units[unit]) for unit in names]
        found: dict[str, str] = {}
        for unit, path, rows in zip(names, paths, each(_input_shas, paths), strict=True):
            inputs = set(rows)
            if unit_name(inputs) != unit:
                raise AccountingError(
                    _delete_and_rerun(path, "the rows of some question are missing")
                )
            found.update(dict.fromkeys(inputs, unit))
        return found

    def verify(self, steps: Sequence[Step]) -> None:
        """Raise AccountingError where a committed shard holds more or fewer rows than were written,
        or the shard of the calls that its rows were made from is missing."""
        self._verified(steps)

    def _verified(self, steps: Sequence[Step]) -> dict[str, dict[str, frozenset[str]]]:
        """step_id -> unit -> the problems of its rows, and of its calls those without a reply.
        Raises as `verify` does."""
        return {step.id: self._verified_step(step) for step in steps}

    def _verified_step(self, step: Step) -> dict[str, frozenset[str]]:
        units, calls = self.units(step.table, step.id), self.units("calls", step.id)
        if step.prompts:
            for unit, attempt in sorted(units.items()):
                # A later attempt may have ended after its calls were committed.
                if not self._has_calls(step, unit, attempt, calls.get(unit, 0)):
                    path = self.path(step.table, step.id, unit, attempt)
                    raise AccountingError(
                        _delete_and_rerun(path, "the shard of its calls is missing")
                    )
            calls |= units
        of_rows = each(_verify, [self.path(step.table, step.id, *one) for one in units.items()])
        of_calls = each(_verify, [self.path("calls", step.id, *one) for one in calls.items()])
        found = {unit: set(problems) for unit, problems in zip(units, of_rows, strict=True)}
        for unit, problems in zip(calls, of_calls, strict=True):
            found.setdefault(unit, set()).update(problems & set(UNANSWERED))
        return {unit: frozenset(problems) for unit, problems in found.items()}

    def _has_calls(self, step: Step, unit: str, attempt: int, last: int) -> bool:
        is_older = last > attempt and self.path("calls", step.id, unit, attempt).is_file()
        return last == attempt or is_older


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
        _ROWS_WRITTEN: str(arrow.num_rows),
        _PROBLEMS: json.dumps(Counter(row.problem for row in rows if row.problem)),
        STARTED_AT: (started_at or utc_now()).isoformat(),
        WORKER: process_name(),
    }
    return parquet(arrow.replace_schema_metadata(footer))


def last_attempts(files: Iterable[UPath]) -> dict[tuple[str, str], tuple[int, UPath]]:
    """(step_id, unit) -> the highest attempt and its shard. Files named otherwise are left out."""
    found: dict[tuple[str, str], tuple[int, UPath]] = {}
    for file in files:
        if named := _NAME.fullmatch(file.name):
            key, attempt = (file.parent.name, named["unit"]), int(named["attempt"])
            found[key] = max(found.get(key, (0, file)), (attempt, file), key=lambda one: one[0])
    return found


def process_name() -> str:
    """What names this process among all that write to a warehouse: its host and its number."""
    return f"{socket.gethostname()}-{os.getpid()}"


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


def _input_shas(path: UPath) -> list[str]:
    shas: list[str] = _read(path, ["input_sha"])["input_sha"].to_pylist()
    return shas


def _read(path: UPath, columns: list[str] | None = None) -> Any:
    try:
        return pq.read_table(io.BytesIO(path.read_bytes()), columns=columns)
    except (pa.ArrowInvalid, OSError) as error:
        raise AccountingError(_delete_and_rerun(path, f"cannot be read ({error})")) from None


def _footer(path: UPath) -> Any:
    try:
        with path.open("rb") as file:
            return pq.read_metadata(file)
    except (pa.ArrowInvalid, OSError) as error:
        raise AccountingError(_delete_and_rerun(path, f"cannot be read ({error})")) from None


def _verify(path: UPath) -> set[str]:
    """The problems of a shard's rows. Raises AccountingError where it lacks rows."""
    footer = _footer(path)
    written = (footer.metadata or {}).get(_ROWS_WRITTEN.encode(), b"none").decode()
    if written != str(footer.num_rows):
        raise AccountingError(
            _delete_and_rerun(path, f"{footer.num_rows} rows, {written} were written")
        )
    problems = (footer.metadata or {}).get(_PROBLEMS.encode())
    return set(json.loads(problems)) if problems else _problems(path, footer)


def _problems(path: UPath, footer: Any) -> set[str]:
    """Those of a shard written by a version that did not yet count them."""
    if "problem" not in footer.schema.names:
        return set()
    return set(_read(path, ["problem"])["problem"].unique().to_pylist()) - {None}


def _delete_and_rerun(path: UPath, what: str) -> str:
    """The message for a damaged shard; its rows and calls must be deleted together."""
    both = f"{path.parent.name}/{path.name}"
    return f"{path}: {what}; delete tables/*/{both} and run the same command to make it again"


def read_parquet_rows(path: AnyPath) -> Iterator[dict[str, Any]]:
    """The rows of a user's Parquet file, streamed. Raises UsageError where it is not readable."""
    try:
        with place(path).open("rb") as file:
            for batch in pq.ParquetFile(file).iter_batches(batch_size=256):
                yield from batch.to_pylist()
    except (pa.ArrowInvalid, OSError) as error:
        line = str(error).splitlines()[0]
        raise UsageError(f"{path}: not a readable Parquet file ({line}); write it again") from None


def parquet(arrow: Any) -> bytes:
    """An Arrow table as the content of a Parquet file."""
    buffer = io.BytesIO()
    pq.write_table(arrow, buffer, compression="zstd")
    return buffer.getvalue()


def write_json(path: AnyPath, content: Mapping[str, Any]) -> None:
    """Write or replace a small JSON file atomically."""
    write(place(path), (json.dumps(content, indent=2, sort_keys=True) + "\n").encode())
