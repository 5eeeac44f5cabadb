"""Shards: one Parquet file per unit and table, committed once: the first commit wins; their names.

<warehouse>/tables/<table>/<step_id>/<unit>.<attempt>.parquet; a retry writes the next attempt, and
the highest one counts. A shard's footer holds the number of rows written, so that `verify` notices
rows lost or doubled afterwards, the counts of their problems, the worker that wrote them, and the
time it started on them.
"""

import json
import os
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from errno import ENOENT
from functools import cache, partial
from typing import Any, TypeVar

import pyarrow as pa
from pydantic import ValidationError
from upath import UPath

from pipeline.core.arrow import from_arrow
from pipeline.core.calls import UNANSWERED, Call
from pipeline.core.rows import Record
from pipeline.files.parquet import read_parquet
from pipeline.files.storage import (
    AnyPath,
    as_path,
    commit,
    delete,
    is_file,
    is_remote,
    list_names,
    list_paths,
    map_files,
    read,
    refusal_error,
)
from pipeline.store.shards.damaged_files import damaged_shard, shard_footer
from pipeline.store.shards.shard_content import PROBLEMS, shard_content
from pipeline.store.shards.shard_index import Compacted, Entry, Index
from pipeline.work.steps import Step
from pipeline.work.units import Committed, Unit, unit_name

_NAME = re.compile(r"(?P<unit>[0-9a-f]+)\.(?P<attempt>[1-9]\d{0,8})\.parquet")
ShardFiles = Mapping[tuple[str, str], list[str]]
"""The names in every folder <table>/<step_id>."""


def last_attempts(names: Iterable[str]) -> dict[str, tuple[int, str]]:
    """unit -> its highest attempt and the name of that shard. Other file names are left out."""
    found: dict[str, tuple[int, str]] = {}
    for name in names:
        if named := shard_name(name):
            unit, attempt = named
            found[unit] = max(found.get(unit, (0, "")), (attempt, name))
    return found


def highest_attempts(
    names: Iterable[str], index: Index, table: str, step_id: str
) -> dict[str, int]:
    """unit -> the highest attempt of a step's shards, loose ones of these names and compacted ones.
    List the names before reading the index: a shard that was deleted meanwhile is in it."""
    units = index.units(table, step_id)
    for unit, (attempt, _) in last_attempts(names).items():
        units[unit] = max(attempt, units.get(unit, 0))
    return units


def shard_name(name: str) -> tuple[str, int] | None:
    """The unit and the attempt in a shard's name; None for the name of another file."""
    named = _NAME.fullmatch(name)
    return (named["unit"], int(named["attempt"])) if named else None


def list_shard_files(root: UPath) -> ShardFiles:
    """The file names in tables/ now. Read the index after calling this: a shard that was deleted
    before is in it."""
    found: dict[tuple[str, str], list[str]] = {}
    if is_remote(root):
        for file in list_paths(root / "tables", "*/*/*"):
            found.setdefault((file.parent.parent.name, file.parent.name), []).append(file.name)
        return found
    for step in list_paths(root / "tables", "*/*"):
        found[step.parent.name, step.name] = list_names(step)
    return found


def not_compacted(found: ShardFiles, index: Index) -> ShardFiles:
    """The names that are not in the index."""
    return {
        step: sorted(set(names) - index.names(*step)) if names else []
        for step, names in sorted(found.items())
    }


def loose_shards(root: UPath, names: ShardFiles) -> dict[str, list[UPath]]:
    """The shards of every table."""
    loose: dict[str, list[UPath]] = {}
    for (table, step_id), own in names.items():
        folder = root / "tables" / table / step_id
        loose.setdefault(table, []).extend(folder / name for name in own if shard_name(name))
    return loose


def current_names(names: ShardFiles, index: Index) -> ShardFiles:
    """The shards that count, of those that are not compacted: the highest attempt of their unit,
    compacted ones included."""
    current = {}
    for (table, step_id), own in names.items():
        compacted = index.units(table, step_id) if own else {}
        current[table, step_id] = [
            name
            for unit, (attempt, name) in sorted(last_attempts(own).items())
            if attempt > compacted.get(unit, 0)
        ]
    return current


A = TypeVar("A")
R = TypeVar("R", bound=Record)
Key = tuple[str, str, str, int]
"""A shard's table, step_id, unit and attempt."""
_NOTHING = Committed(units={}, inputs={})
_MOVES = 5  # times to look for a shard that a compaction has moved; the second finds it


class Shards:
    """Reads and commits the shards of one warehouse, those in tables/ and compacted ones."""

    def __init__(self, warehouse: AnyPath) -> None:
        self.warehouse = as_path(warehouse)
        self._compacted = Compacted(self.warehouse)

    def path(self, table: str, step_id: str, unit: str, attempt: int = 1) -> UPath:
        """The name that a shard is committed under; a compacted one may no longer exist there."""
        return self.warehouse / f"tables/{table}/{step_id}/{unit}.{attempt}.parquet"

    def units(self, table: str, step_id: str) -> dict[str, int]:
        """The units of a step whose shard in `table` is committed, with their highest attempt."""
        names = list_names(self.warehouse / "tables" / table / step_id)
        return highest_attempts(names, self._compacted.refresh(), table, step_id)

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
        key = (record.table, step.id, unit.unit, unit.attempt)
        path = self.path(*key)
        if not commit(path, shard_content(record, step, unit, rows, started_at)):
            return False
        if self._compacted.refresh().find(*key):  # another's: compacted, then deleted here
            delete(path)
            return False
        return True

    def load(self, record: type[R], step_id: str, unit: str, attempt: int = 1) -> tuple[R, ...]:
        """The rows of a committed shard, in the order they were written. Raises DamagedError if
        they cannot be read."""
        key = (record.table, step_id, unit, attempt)
        stored = self._wherever(key, partial(self._compacted.read, record.table), _read)
        try:
            return from_arrow(record, stored)
        except ValidationError as error:
            first = error.errors()[0]
            what = f"row {first['loc'][0]}, {first['loc'][-1]}: {first['msg']}"
            raise damaged_shard(self.path(*key), what) from None

    def num_bytes(self, table: str, step_id: str, unit: str, attempt: int = 1) -> int:
        """The size of a committed shard's rows in memory."""

        def loose(path: UPath) -> int:
            footer = shard_footer(path)
            return sum(footer.row_group(i).total_byte_size for i in range(footer.num_row_groups))

        key = (table, step_id, unit, attempt)
        return self._wherever(key, lambda entry: entry.num_bytes, loose)

    def recorded(self, step_id: str, unit: str, attempt: int = 1) -> tuple[Call, ...] | None:
        """The calls of an attempt at a unit; None if its calls shard is not committed."""
        key = (Call.table, step_id, unit, attempt)
        return self.load(Call, step_id, unit, attempt) if self._is_committed(key) else None

    def _is_committed(self, key: Key) -> bool:
        if self._compacted.index.find(*key) or is_file(self.path(*key)):
            return True
        return self._compacted.refresh().find(*key) is not None

    def _wherever(
        self, key: Key, compacted: Callable[[Entry], A], loose: Callable[[UPath], A]
    ) -> A:
        """The result of `compacted` for a compacted shard, of `loose` for one in tables/. Tries
        again if a compaction has moved it meanwhile."""
        for _ in range(_MOVES):
            try:
                entry = self._compacted.index.find(*key)
                return compacted(entry) if entry else loose(self.path(*key))
            except FileNotFoundError:
                self._compacted.refresh()
        path = self.path(*key)
        if path.name in list_names(path.parent):  # a broken link
            raise damaged_shard(path, "cannot be read (no such file)")
        raise refusal_error(path, FileNotFoundError(ENOENT, os.strerror(ENOENT)))

    def committed(self, steps: Sequence[Step]) -> Committed:
        """The committed units of `steps`. Raises AccountingError if a shard lacks rows."""
        units = {step.id: self.units(step.table, step.id) for step in steps}
        problems = self.verify(steps)
        asked = {step.id: step for step in steps if step.per_question}
        loose = {step.id: self._loose_inputs(step, units[step.id]) for step in asked.values()}

        def read(step_id: str) -> Mapping[str, str]:
            return self._inputs(asked[step_id], loose[step_id])

        return Committed(units=units, inputs=_InputsByStep(asked, read), problems=problems)

    def _loose_inputs(self, step: Step, units: Mapping[str, int]) -> dict[str, list[str]]:
        """The hashes of the questions of every unit of a step that is not compacted. Raises
        AccountingError if one lacks the rows of a question."""
        compacted = self._compacted.index.units(step.table, step.id)
        names = [unit for unit, attempt in units.items() if compacted.get(unit) != attempt]
        keys = [(step.table, step.id, unit, units[unit]) for unit in names]
        found = map_files(self._input_shas, keys, self.warehouse)
        return dict(zip(names, found, strict=True))

    def _inputs(self, step: Step, loose: Mapping[str, list[str]]) -> Mapping[str, str]:
        """input_sha -> the unit that holds it; if two do, the one of the lower name."""
        compacted = self._compacted.index.input_shas(step.table, step.id)
        inputs = [(unit, input_sha) for unit, own in loose.items() for input_sha in own]
        columns = [pa.array([row[i] for row in inputs], pa.string()) for i in range(2)]
        return _Inputs(pa.concat_tables([compacted, pa.table(columns, compacted.schema)]))

    def _input_shas(self, key: Key) -> list[str]:
        """The input hashes of a unit's questions. Raises AccountingError if the unit's name is not
        their hash."""
        columns = ["input_sha"]
        read = partial(self._compacted.read, key[0], columns=columns)
        rows = self._wherever(key, read, partial(_read, columns=columns))
        inputs: list[str] = rows["input_sha"].unique().to_pylist()
        if unit_name(inputs) != key[2]:
            raise damaged_shard(self.path(*key), "the rows of some question are missing")
        return inputs

    def verify(
        self, steps: Sequence[Step], known: Committed = _NOTHING
    ) -> dict[str, dict[str, frozenset[str]]]:
        """Raise AccountingError if a committed shard that is not `known` holds more or fewer rows
        than were written, or the shard of the calls that its rows were made from is missing.

        Returns step_id -> unit -> the problems of its rows, and of its calls those without a reply.
        """
        found = {step.id: self._verified_step(step, known) for step in steps}
        self._compacted.verify()
        return found

    def _verified_step(self, step: Step, known: Committed) -> dict[str, frozenset[str]]:
        units, calls = (
            _unread(step, self.units(table, step.id), known) for table in (step.table, Call.table)
        )
        if step.prompts:
            for unit, attempt in sorted(units.items()):
                key = (Call.table, step.id, unit, attempt)
                # A later attempt may have ended after its calls were committed.
                if calls.get(unit) != attempt and not self._is_committed(key):
                    path = self.path(step.table, step.id, unit, attempt)
                    raise damaged_shard(path, "the shard of its calls is missing")
            calls |= units
        before = known.problems.get(step.id, {})
        found = {unit: problems for unit, problems in before.items() if unit not in units}
        found |= self._problems(step.table, step.id, units)
        for unit, problems in self._problems(Call.table, step.id, calls).items():
            found[unit] = found.get(unit, frozenset()) | problems & set(UNANSWERED)
        return found

    def _problems(
        self, table: str, step_id: str, units: Mapping[str, int]
    ) -> dict[str, frozenset[str]]:
        """The problems of the units that have some. Raises DamagedError for a loose shard."""
        index = self._compacted.index
        compacted = index.units(table, step_id)
        found = {
            unit: problems
            for unit, attempt, problems in index.problems(table, step_id)
            if units.get(unit) == attempt
        }
        loose = [(table, step_id, unit, attempt) for unit, attempt in units.items()
                 if compacted.get(unit) != attempt]  # fmt: skip
        problems_of = partial(
            self._wherever, compacted=lambda entry: frozenset[str](), loose=_problems
        )
        for key, problems in zip(loose, map_files(problems_of, loose, self.warehouse), strict=True):
            if problems:
                found[key[2]] = problems
        return found


class _Inputs(Mapping[str, str]):
    """input_sha -> unit, over a table of both: a dictionary of a million takes ten times as much
    memory."""

    def __init__(self, rows: Any) -> None:
        ordered = rows.sort_by([(name, "ascending") for name in ("input_sha", "unit")])
        self._shas, self._units = (
            ordered[name].combine_chunks() for name in rows.column_names[::-1]
        )

    def __getitem__(self, input_sha: str) -> str:
        place = bisect_left(self._shas, input_sha, key=lambda own: own.as_py())
        if place == len(self._shas) or self._shas[place].as_py() != input_sha:
            raise KeyError(input_sha)
        return str(self._units[place].as_py())

    def __iter__(self) -> Iterator[str]:
        return iter(self._shas.unique().to_pylist())

    def __len__(self) -> int:
        return len(self._shas.unique())


class _InputsByStep(Mapping[str, Mapping[str, str]]):
    """`Committed.inputs`, read for a step when they are first asked for: a plan needs them where a
    chunk of questions is not committed as it is."""

    def __init__(self, steps: Mapping[str, Step], read: Callable[[str], Mapping[str, str]]) -> None:
        self._steps, self._read = steps, cache(read)

    def __getitem__(self, step_id: str) -> Mapping[str, str]:
        return self._read(step_id)

    def __iter__(self) -> Iterator[str]:
        return iter(self._steps)

    def __len__(self) -> int:
        return len(self._steps)


def _unread(step: Step, units: Mapping[str, int], known: Committed) -> dict[str, int]:
    """Those of a step's units, with their attempts, that are not known."""
    return {u: attempt for u, attempt in units.items() if known.attempt(step.id, u) != attempt}


def _read(path: UPath, columns: list[str] | None = None) -> Any:
    try:
        return read_parquet(read(path), columns)
    except FileNotFoundError:
        raise
    except (pa.ArrowInvalid, OSError) as error:
        raise damaged_shard(path, f"cannot be read ({error})") from None


def _problems(path: UPath) -> frozenset[str]:
    """The problems of a shard's rows. Raises as `shard_footer` does."""
    footer = shard_footer(path)
    problems = (footer.metadata or {}).get(PROBLEMS.encode())
    if problems is None and "problem" in footer.schema.names:  # of an earlier version
        return frozenset(_read(path, ["problem"])["problem"].unique().to_pylist()) - {None}
    return frozenset(json.loads(problems or "[]"))
