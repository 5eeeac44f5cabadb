"""Render the calls of one document again: execute each unit's stage once more on stored rows.

A unit may have read an earlier attempt of rows that another run has made again since, so earlier
attempts are tried where the latest do not lead to the calls.
"""

import asyncio
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice, product
from typing import Any, TypeVar

from jobs.recorded_counts import counts_of
from jobs.recorded_steps import NotRenderedError, RecordedStep, RecordedSteps
from pipeline.arrow import from_arrow
from pipeline.calls import About, Replay, about
from pipeline.engine import Request
from pipeline.errors import AccountingError, StorageError
from pipeline.executor import run_stage, stage_input
from pipeline.rerender import RecordedEngine, Rerender
from pipeline.rows import Call, Record, UnitRows
from pipeline.store import Shards
from pipeline.units import Unit, rows_of

T = TypeVar("T")
Rows = tuple[Any, ...]
_MOST_ATTEMPTS = 16  # combinations of attempts at the rows that a unit read
_CHANGED = (
    "rendered again it is another request: a row that it was made from is not the one of then"
)


@dataclass(frozen=True)
class Rendered:
    """A row of `calls`, and the request it was sent as; null: `why_not`."""

    call: Mapping[str, Any]
    request: Request | None
    why_not: str | None


@dataclass
class _Try:
    """What one execution of a unit led to: the requests recognised, and why there are no more."""

    sent: Mapping[About, Request]
    why_not: str


class Attempts:
    """The highest committed attempts of units; each step's are listed once."""

    def __init__(self, shards: Shards) -> None:
        self._of_step = cache(shards.units)

    def highest(self, table: str, unit: Unit) -> int | None:
        """Of the unit's rows in a table; null where none are committed."""
        return self._of_step(table, unit.step_id).get(unit.unit)


class DocumentCalls:
    """The calls of one document. Rows are read and units rendered at most once."""

    def __init__(
        self,
        units: Sequence[Unit],
        shards: Shards,
        attempts: Attempts,
        steps: RecordedSteps,
        config: Mapping[str, Any],
    ) -> None:
        """`units`: all that the run has planned for the document; `config`: the run's."""
        self.units = units
        self.document_id = units[0].document_id
        self._shards, self._attempts = shards, attempts
        self._steps, self._config = steps, config
        self._by_step: dict[str, list[Unit]] = {}
        for unit in units:
            self._by_step.setdefault(unit.step_id, []).append(unit)
        self._rows: dict[tuple[str, str, int], Rows] = {}
        self._found: dict[tuple[str, str], list[Rendered]] = {}

    def of(self, unit: Unit) -> list[Rendered]:
        """The calls of a unit; none where it is not done."""
        key = (unit.step_id, unit.unit)
        if key not in self._found:
            self._found[key] = self._of(unit)
        return self._found[key]

    def _of(self, unit: Unit) -> list[Rendered]:
        attempt = self._attempts.highest(Call.table, unit)
        if attempt is None:
            return []
        stored = self._shards.stored(Call.table, unit.step_id, unit.unit, attempt)
        calls, rows = from_arrow(Call, stored), stored.to_pylist()
        tried = self._tried(unit, Replay(calls=calls, attempt=attempt)) if calls else None
        found = []
        for call, row in zip(calls, rows, strict=True):
            assert tried is not None
            request = tried.sent.get(about(call.request_sha, call))
            found.append(Rendered(row, request, None if request else tried.why_not))
        return found

    def _tried(self, unit: Unit, replay: Replay) -> _Try:
        """The execution that led to most of the calls."""
        try:
            step = self._steps.step(unit.step_id)
            tries = self._tries(step, unit, replay)
            best = next(tries)
            for one in tries:
                if _is_whole(best, replay):
                    break
                best = one if len(one.sent) > len(best.sent) else best
        except (NotRenderedError, AccountingError, StorageError) as error:
            return _Try({}, str(error))
        return best

    def _tries(self, step: RecordedStep, unit: Unit, replay: Replay) -> Iterator[_Try]:
        for rows in self._inputs(step, unit):
            for count in counts_of(step.description.engine or {}, self._config):
                engine = step.engine(replay.calls[0].engine, count)
                reader = step.reader(engine)
                description = step.description
                ask = Rerender(
                    reader, engine, description.stage, unit.document_id, replay, description.repeat
                )
                made = _in_a_thread(run_stage(step.stage, rows, ask))
                yield _Try(ask.sent, _why_not(step, engine, made))
                if not engine.has_counted:
                    break

    def _inputs(self, step: RecordedStep, unit: Unit) -> Iterator[UnitRows]:
        """The rows that the unit may have read, the latest attempts first. Raises
        NotRenderedError, AccountingError or StorageError where they cannot be read."""
        read = self._steps.upstream(step.description, list(self._by_step))
        units = [one for step_id in read for one in self._by_step.get(step_id, ())]
        units = [one for one in units if not one.inputs or set(one.inputs) & set(unit.inputs)]
        latest = [range(self._latest(one), 0, -1) for one in units]
        for attempts in islice(product(*latest), _MOST_ATTEMPTS):
            chosen = [replace(u, attempt=a) for u, a in zip(units, attempts, strict=True)]
            tables: dict[type[Record], Rows] = {}
            for one in chosen:
                writes = self._writes(one.step_id)
                rows = self._load(writes, one)
                rows = rows_of(rows, unit.inputs) if one.inputs else rows
                tables[writes] = (*tables.get(writes, ()), *rows)
            yield stage_input(step.stage, unit, tables)

    def _latest(self, unit: Unit) -> int:
        """The highest committed attempt of a unit's rows. Raises NotRenderedError."""
        table = self._writes(unit.step_id).table
        attempt = self._attempts.highest(table, unit)
        if attempt is None:
            raise NotRenderedError(f"the {table} that it was made from are missing")
        return attempt

    def _writes(self, step_id: str) -> type[Record]:
        description = self._steps.description(step_id)
        if description.writes is None:
            why = f"the table {description.table} is of a plugin that is not loaded"
            raise NotRenderedError(f"{why}; name it with plugins=DIR")
        return description.writes

    def _load(self, writes: type[Record], unit: Unit) -> Rows:
        key = (unit.step_id, unit.unit, unit.attempt)
        if key not in self._rows:
            self._rows[key] = self._shards.load(writes, *key)
        return self._rows[key]


def _is_whole(tried: _Try, replay: Replay) -> bool:
    return {about(call.request_sha, call) for call in replay.calls} <= tried.sent.keys()


def _why_not(step: RecordedStep, engine: RecordedEngine, made: Rows) -> str:
    """Why a call was not rendered again, although its unit was executed."""
    if engine.count is None and engine.has_counted:
        model = (step.description.engine or {}).get("model", engine.name)
        return (
            f"what it was sent depends on how many tokens texts have, which takes the tokenizer of "
            f"{model} on this machine"
        )
    if failed := next((row for row in made if row.problem == "unit_failed"), None):
        last = (getattr(failed, "detail", None) or "").strip().rpartition("\n")[2]
        return f"its stage failed when it was executed again: {last}"
    if step.is_other_version:
        versions = f"{step.description.version}, this gistmill has {step.stage.version}"
        return f"{_CHANGED}, or its stage is: it was made by version {versions}"
    return _CHANGED


def _in_a_thread(work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`. In a thread, as a notebook's own event loop may run in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()
