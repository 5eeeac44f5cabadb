"""Render the calls of one document again, by executing each unit's stage again on stored rows.

A unit may have read an earlier attempt at rows that another run has made again since, so earlier
attempts are tried if the latest do not lead to the calls.
"""

import asyncio
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import islice, product
from typing import Any, TypeVar

from jobs.trace.recorded_counts import possible_counts
from jobs.trace.recorded_steps import NotRenderedError, RecordedStep, RecordedSteps
from pipeline.asking.rerender import RecordedEngine, Rerender, context_tokens_of
from pipeline.core.calls import CallKey, Replay, call_key
from pipeline.core.engine import Request
from pipeline.core.errors import AccountingError, StorageError
from pipeline.core.rows import Call, Document, Record, UnitRows
from pipeline.store import Shards
from pipeline.store.shards.damaged_files import DamagedFiles
from pipeline.work.units import Unit, rows_of_questions
from pipeline.worker.executor import run_stage, stage_input

T = TypeVar("T")
Rows = tuple[Any, ...]
_MOST_ATTEMPTS = 16  # combinations of attempts at the rows that a unit read
_CHANGED = (
    "rendered again it is another request: a row that it was made from is not the one of then"
)


@dataclass(frozen=True)
class Rendered:
    """A row of `calls`, and the request it was sent as; None if it cannot be rendered, for the
    reason `why_not`."""

    call: Mapping[str, Any]
    request: Request | None
    why_not: str | None


@dataclass
class _Try:
    """The result of one execution of a unit: the requests recognised, and why there are no more."""

    sent: Mapping[CallKey, Request]
    why_not: str


class Attempts:
    """The highest committed attempts of units; the units of each step are listed once."""

    def __init__(self, shards: Shards) -> None:
        self._of_step = cache(shards.units)

    def highest(self, table: str, unit: Unit) -> int | None:
        """The highest attempt of the unit's rows in a table; None if none are committed."""
        return self._of_step(table, unit.step_id).get(unit.unit)


class DocumentCalls:
    """The calls of one document. Rows are read and units rendered at most once. Calls whose shard
    cannot be read are left out, with a LeftOutWarning."""

    def __init__(
        self,
        units: Sequence[Unit],
        shards: Shards,
        attempts: Attempts,
        steps: RecordedSteps,
        config: Mapping[str, Any],
    ) -> None:
        """`units`: all planned units of the document; `config`: the run's."""
        self.units = units
        self.document_id = units[0].document_id
        self.left_out = DamagedFiles()
        self._shards, self._attempts = shards, attempts
        self._steps, self._config = steps, config
        self._by_step: dict[str, list[Unit]] = {}
        for unit in units:
            self._by_step.setdefault(unit.step_id, []).append(unit)
        self._rows: dict[tuple[str, str, int], Rows] = {}
        self._found: dict[tuple[str, str], list[Rendered]] = {}

    def of(self, unit: Unit) -> list[Rendered]:
        """The calls of a unit; empty if it is not done."""
        key = (unit.step_id, unit.unit)
        if key not in self._found:
            self._found[key] = self._of(unit)
        return self._found[key]

    def _of(self, unit: Unit) -> list[Rendered]:
        attempt = self._attempts.highest(Call.table, unit)
        if attempt is None:
            return []
        key = (unit.step_id, unit.unit, attempt)
        none: tuple[tuple[Call, ...], list[dict[str, Any]]] = ((), [])
        calls, rows = self.left_out.unless_damaged(partial(self._shards.stamped, Call, *key), none)
        if not calls:
            return []
        tried = self._tried(unit, Replay(calls=calls, attempt=attempt))
        requests = [tried.sent.get(call_key(call.request_sha, call)) for call in calls]
        return [
            Rendered(row, request, None if request else tried.why_not)
            for row, request in zip(rows, requests, strict=True)
        ]

    def _tried(self, unit: Unit, replay: Replay) -> _Try:
        """The execution that led to most of the calls."""
        best: _Try | None = None
        try:
            for one in self._tries(self._steps.step(unit.step_id), unit, replay):
                best = one if best is None or len(one.sent) > len(best.sent) else best
                if _is_whole(best, replay):
                    break
        except (NotRenderedError, AccountingError, StorageError) as error:
            return best or _Try({}, str(error))
        return best or _Try({}, _CHANGED)

    def _tries(self, step: RecordedStep, unit: Unit, replay: Replay) -> Iterator[_Try]:
        description = step.description
        for rows in self._inputs(step, unit):
            for count in possible_counts(step.identity, self._config):
                engine = RecordedEngine(
                    replay.calls[0].engine, context_tokens_of(step.identity), count
                )
                ask = Rerender(
                    step.reader(engine),
                    engine,
                    description.stage,
                    unit.document_id,
                    replay,
                    description.repeat,
                )
                yield _executed(step, rows, ask, engine)
                if not engine.has_counted:
                    break

    def _inputs(self, step: RecordedStep, unit: Unit) -> Iterator[UnitRows]:
        """The rows that the unit may have read, the latest attempts first. Raises NotRenderedError,
        AccountingError or StorageError if they cannot be read."""
        read = self._steps.upstream(step.description, list(self._by_step))
        units = [one for step_id in read for one in self._by_step.get(step_id, ())]
        units = [one for one in units if not one.inputs or set(one.inputs) & set(unit.inputs)]
        latest = [range(self._latest(one), 0, -1) for one in units]
        for attempts in islice(product(*latest), _MOST_ATTEMPTS):
            chosen = [replace(u, attempt=a) for u, a in zip(units, attempts, strict=True)]
            tables: dict[type[Record], Rows] = {self._writes(step_id): () for step_id in read}
            for one in chosen:
                writes = self._writes(one.step_id)
                rows = self._load(writes, one)
                rows = rows_of_questions(rows, unit.inputs) if one.inputs else rows
                tables[writes] = (*tables[writes], *rows)
            missing = [record.table for record in step.stage.reads if record not in tables]
            if missing or len(tables.get(Document, ())) != 1:
                raise NotRenderedError(_missing((missing or [Document.table])[0]))
            yield stage_input(step.stage, unit, tables)

    def _latest(self, unit: Unit) -> int:
        """The highest committed attempt of a unit's rows. Raises NotRenderedError."""
        table = self._writes(unit.step_id).table
        attempt = self._attempts.highest(table, unit)
        if attempt is None:
            raise NotRenderedError(_missing(table))
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


def _executed(step: RecordedStep, rows: UnitRows, ask: Rerender, engine: RecordedEngine) -> _Try:
    try:
        made = _in_a_thread(run_stage(step.stage, rows, ask))
    except AccountingError:  # other rows than at the time, which do not match
        return _Try(ask.sent, _CHANGED)
    return _Try(ask.sent, _why_not(step, engine, made))


def _missing(table: str) -> str:
    return f"the {table} that it was made from are missing"


def _is_whole(tried: _Try, replay: Replay) -> bool:
    return {call_key(call.request_sha, call) for call in replay.calls} <= tried.sent.keys()


def _why_not(step: RecordedStep, engine: RecordedEngine, made: Rows) -> str:
    """The reason why a call was not rendered again, although its unit was executed."""
    if engine.count is None and engine.has_counted:
        return (
            "what it was sent depends on how many tokens texts have, which takes the tokenizer of "
            f"{engine.name} on this machine"
        )
    if failed := next((row for row in made if row.problem == "unit_failed"), None):
        last = (getattr(failed, "detail", None) or "").strip().rpartition("\n")[2]
        return f"its stage failed when it was executed again: {last}"
    if step.is_other_version:
        versions = f"{step.description.version}, this gistmill has {step.stage.version}"
        return f"{_CHANGED}, or its stage is: it was made by version {versions}"
    return _CHANGED


def _in_a_thread(work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, in a thread of its own, as a notebook may run an event loop in this
    one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()
