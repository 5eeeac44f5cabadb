"""The progress of a document in flight, unit by unit: for heartbeats, `status` and the time left.

Advisory: committed shards are the only record of progress.
"""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline.core.calls import UnitProgress
from pipeline.work.executions import weight
from pipeline.work.steps import Step
from pipeline.work.units import Unit


@dataclass
class _Pending:
    """A pending unit of a document. `table`: the one that it writes."""

    unit: Unit
    table: str
    asks: bool
    progress: UnitProgress = field(default_factory=UnitProgress)


@dataclass
class DocumentProgress:
    """The progress of one document's pending units. `num_words`: of its text, 0 until it is
    loaded."""

    document_id: str
    num_words: int = 0
    since: float = field(default_factory=time.monotonic)
    _pending: dict[tuple[str, str], _Pending] = field(default_factory=dict)

    def plan(self, units: Iterable[Unit], steps: Mapping[str, Step]) -> None:
        """Set the units; those that are done do not count."""
        for unit in units:
            if not unit.is_done:
                step = steps[unit.step_id]
                own = _Pending(unit, step.table, bool(step.prompts))
                self._pending[unit.step_id, unit.unit] = own

    def started(self, unit: Unit, progress: UnitProgress) -> None:
        """Follow the progress of a unit."""
        self._pending[unit.step_id, unit.unit].progress = progress

    def committed(self, unit: Unit) -> None:
        self._pending[unit.step_id, unit.unit].progress.is_committed = True

    def state(self) -> dict[str, Any]:
        """As JSON: the words of the work on it, the share that is done, the mean of the units' by
        weight, and the progress of the first incomplete table."""
        done = whole = 0.0
        for one in self._pending.values():
            own = weight(one.unit, self.num_words, one.asks)
            done, whole = done + own * one.progress.share, whole + own
        share = round(done / whole, 6) if whole else 0.0
        return {
            "document_id": self.document_id, "words": whole, "share": share, **self._rows(),
        }  # fmt: skip

    def _rows(self) -> dict[str, Any]:
        """The progress of all units of one table: the first that was started and is not
        complete."""
        begun = (o for o in self._pending.values() if o.progress.about and o.progress.share < 1)
        table = next((one.table for one in begun), None)
        told = [o.progress for o in self._pending.values() if o.table == table and o.progress.about]
        done, about = sum(one.done for one in told), sum(one.about or 0 for one in told)
        return {"table": table, "done": done, "about": about}
