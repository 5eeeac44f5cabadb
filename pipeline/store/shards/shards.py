"""Shards: one Parquet file per unit and table, committed once; the first commit wins.

A shard is <warehouse>/tables/<table>/<step_id>/<unit>.<attempt>.parquet, until it is compacted. A
retry writes the next attempt; the highest one counts.
"""

import json
import os
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from errno import ENOENT
from functools import cached_property, partial
from itertools import chain
from typing import Any, TypeVar

import pyarrow as pa
from pydantic import ValidationError
from upath import UPath

from pipeline.core.calls import UNANSWERED, Call
from pipeline.core.rows import Record, from_arrow
from pipeline.files import storage
from pipeline.files.parquet import read_parquet
from pipeline.store.shards.damaged_files import damaged_shard, shard_footer
from pipeline.store.shards.layout import PROBLEMS, shard_content
from pipeline.store.shards.shard_index import Compacted, Entry, Index
from pipeline.work.units import Committed, Step, Unit

_NAME = re.compile(r"(?P<unit>[0-9a-f]+)\.(?P<attempt>[1-9]\d{0,8})\.parquet")
ShardFiles = Mapping[tuple[str, str], list[str]]
"""The names in every folder <table>/<step_id>."""
Key = tuple[str, str, str, int]
"""A shard's table, step_id, unit and attempt."""
A = TypeVar("A")
R = TypeVar("R", bound=Record)


def highest_attempts(
    names: Iterable[str], index: Index, table: str, step_id: str
) -> dict[str, int]:
    """The units of a step that have a shard, loose with one of these names or compacted, each with
    its highest attempt. List the names before reading the index: a shard that was deleted meanwhile
    is in it."""
    units = index.units(table, step_id)
    for match in filter(None, map(_NAME.fullmatch, names)):
        units[match["unit"]] = max(int(match["attempt"]), units.get(match["unit"], 0))
    return units


def list_shard_files(root: UPath) -> ShardFiles:
    """The file names in tables/ now. Read the index after calling this: a shard that was deleted
    before is in it."""
    if not storage.is_remote(root):
        folders = sorted(storage.list_paths(root / "tables", "*/*"))
        return {(folder.parent.name, folder.name): storage.list_names(folder) for folder in folders}
    files: dict[tuple[str, str], list[str]] = {}
    for file in sorted(storage.list_paths(root / "tables", "*/*/*")):
        files.setdefault((file.parent.parent.name, file.parent.name), []).append(file.name)
    return files


def loose_shards(
    root: UPath, files: ShardFiles, index: Index, are_current: bool = False
) -> dict[str, list[UPath]]:
    """The shards of every table that are not compacted. `are_current`: only the highest attempt of
    each unit."""
    loose: dict[str, list[UPath]] = {}
    for (table, step_id), names in files.items():
        if not names:
            continue
        chosen = {*filter(_NAME.fullmatch, names)} - index.names(table, step_id)
        if are_current:
            last = highest_attempts(chosen, index, table, step_id)
            chosen &= {f"{unit}.{attempt}.parquet" for unit, attempt in last.items()}
        folder = root / "tables" / table / step_id
        loose.setdefault(table, []).extend(folder / name for name in sorted(chosen))
    return loose


class Shards:
    """Reads and commits the shards of one warehouse, those in tables/ and compacted ones."""

    def __init__(self, warehouse: storage.AnyPath) -> None:
        self.warehouse = storage.as_path(warehouse)
        self._compacted = Compacted(self.warehouse)

    def path(self, table: str, step_id: str, unit: str, attempt: int = 1) -> UPath:
        """The name that a shard is committed under; a compacted one may no longer exist there."""
        return self.warehouse / f"tables/{table}/{step_id}/{unit}.{attempt}.parquet"

    def units(self, table: str, step_id: str) -> dict[str, int]:
        """The units of a step whose shard in `table` is committed, with their highest attempt."""
        names = storage.list_names(self.warehouse / "tables" / table / step_id)
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
        if not storage.commit(path, shard_content(record, step, unit, rows, started_at)):
            return False
        if self._compacted.refresh().find(*key):  # another commit was first, and is compacted
            storage.delete(path)
            return False
        return True

    def load(self, record: type[R], step_id: str, unit: str, attempt: int = 1) -> tuple[R, ...]:
        """The rows of a committed shard, in the order they were written. Raises DamagedError if
        they cannot be read."""
        key = (record.table, step_id, unit, attempt)
        try:
            return from_arrow(record, self._rows(key))
        except ValidationError as error:
            first = error.errors()[0]
            what = f"row {first['loc'][0]}, {first['loc'][-1]}: {first['msg']}"
            raise damaged_shard(self.path(*key), what) from None

    def recorded(self, step_id: str, unit: str, attempt: int = 1) -> tuple[Call, ...] | None:
        """The calls of an attempt at a unit; None if its calls shard is not committed."""
        key = (Call.table, step_id, unit, attempt)
        return self.load(Call, step_id, unit, attempt) if self._is_committed(key) else None

    def committed(self, steps: Sequence[Step]) -> Committed:
        """The committed units of `steps`, with problems of their rows and of calls without a reply.
        Raises DamagedError if a file lost or doubled rows, or if the calls that a unit was made
        from are missing."""
        units = {step.id: self.units(step.table, step.id) for step in steps}
        problems = {step.id: self._problems_of_step(step, units[step.id]) for step in steps}
        self._compacted.verify()
        inputs = {
            step.id: _Inputs(partial(self._inputs, step, units[step.id]))
            for step in steps
            if step.per_question
        }
        return Committed(units=units, inputs=inputs, problems=problems)

    def _problems_of_step(self, step: Step, units: Mapping[str, int]) -> dict[str, frozenset[str]]:
        problems = self._problems(step.table, step.id, units)
        if not step.prompts:
            return problems
        calls = self.units(Call.table, step.id)
        for unit, attempt in sorted(units.items()):
            # A later attempt may have ended after its calls were committed.
            key = (Call.table, step.id, unit, attempt)
            if calls.get(unit) != attempt and not self._is_committed(key):
                path = self.path(step.table, step.id, unit, attempt)
                raise damaged_shard(path, "the shard of its calls is missing")
        for unit, codes in self._problems(Call.table, step.id, calls | {**units}).items():
            problems[unit] = problems.get(unit, frozenset()) | codes & set(UNANSWERED)
        return problems

    def _problems(
        self, table: str, step_id: str, units: Mapping[str, int]
    ) -> dict[str, frozenset[str]]:
        problems = {
            unit: codes
            for unit, attempt, codes in self._compacted.index.problems(table, step_id)
            if units.get(unit) == attempt
        }

        def in_footer(path: UPath) -> frozenset[str]:
            metadata = shard_footer(path).metadata
            return frozenset(json.loads(metadata.get(PROBLEMS.encode(), b"[]")))

        loose = self._loose(table, step_id, units)
        codes_of = partial(self._wherever, compacted=lambda _: frozenset[str](), loose=in_footer)
        codes_of_loose = storage.map_files(codes_of, loose, self.warehouse)
        return problems | {
            key[2]: codes for key, codes in zip(loose, codes_of_loose, strict=True) if codes
        }

    def _inputs(self, step: Step, units: Mapping[str, int]) -> Any:
        def shas_of(key: Key) -> list[str]:
            shas: list[str] = self._rows(key, ["input_sha"])["input_sha"].unique().to_pylist()
            return shas

        keys = self._loose(step.table, step.id, units)
        shas = storage.map_files(shas_of, keys, self.warehouse)
        unit_of_sha = [key[2] for key, of_unit in zip(keys, shas, strict=True) for _ in of_unit]
        columns = {"unit": unit_of_sha, "input_sha": [*chain.from_iterable(shas)]}
        compacted = self._compacted.index.input_shas(step.table, step.id)
        return pa.concat_tables([compacted, pa.table(columns, compacted.schema)])

    def _loose(self, table: str, step_id: str, units: Mapping[str, int]) -> list[Key]:
        compacted = self._compacted.index.units(table, step_id)
        return [(table, step_id, unit, attempt) for unit, attempt in units.items()
                if compacted.get(unit) != attempt]  # fmt: skip

    def _is_committed(self, key: Key) -> bool:
        if self._compacted.index.find(*key) or storage.exists(self.path(*key)):
            return True
        return self._compacted.refresh().find(*key) is not None

    def _rows(self, key: Key, columns: list[str] | None = None) -> Any:
        def loose(path: UPath) -> Any:
            try:
                return read_parquet(storage.read(path), columns)
            except pa.ArrowInvalid as error:
                raise damaged_shard(path, f"cannot be read ({error})") from None

        return self._wherever(key, partial(self._compacted.read, key[0], columns=columns), loose)

    def _wherever(
        self, key: Key, compacted: Callable[[Entry], A], loose: Callable[[UPath], A]
    ) -> A:
        """The result of `compacted` for a compacted shard, of `loose` for one in tables/. Looks
        again if a compaction has moved the shard meanwhile."""
        for index in (self._compacted.index, None):
            entry = (index or self._compacted.refresh()).find(*key)
            try:
                return compacted(entry) if entry else loose(self.path(*key))
            except FileNotFoundError:
                continue
        raise storage.refusal_error(self.path(*key), FileNotFoundError(ENOENT, os.strerror(ENOENT)))


class _Inputs(Mapping[str, str]):
    """Maps each input_sha to the unit that holds it; to the lower name if two units hold it. `read`
    returns a table of both columns. It is called at the first lookup, as a plan needs it only for a
    chunk of questions that is not committed unchanged. A dictionary takes ten times the memory."""

    def __init__(self, read: Callable[[], Any]) -> None:
        self._read = read

    @cached_property
    def _rows(self) -> Any:
        rows = self._read().sort_by([("input_sha", "ascending"), ("unit", "ascending")])
        return rows.combine_chunks()

    def __getitem__(self, input_sha: str) -> str:
        shas = self._rows["input_sha"]
        row = bisect_left(range(len(shas)), input_sha, key=lambda number: str(shas[number]))
        if row == len(shas) or str(shas[row]) != input_sha:
            raise KeyError(input_sha)
        return str(self._rows["unit"][row])

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows["input_sha"].unique().to_pylist())

    def __len__(self) -> int:
        return len(self._rows["input_sha"].unique())
