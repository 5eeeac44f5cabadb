"""The work of a run: one Ray Data execution after another, watched, counted and ended well."""

import functools
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from jobs.config import RunConfig
from jobs.ending import Ending
from jobs.eta import weights
from jobs.phases import Phase
from jobs.plan.rates import REPLY_COSTS
from jobs.plan.weights import reply_costs
from jobs.plan.weights import weights as by_curves
from jobs.progress import Progress
from jobs.stall import StallWatch
from pipeline.cluster import join, run_items
from pipeline.errors import EndedError
from pipeline.steps import DocumentKey, Unit
from pipeline.stop import StopSign
from pipeline.store.runs import RunFolder
from pipeline.worker import Start
from stages.engines import start_reader


class Work:
    """Of one launch of a run. `progress` and `ended` tell what came of it."""

    def __init__(
        self,
        config: RunConfig,
        folder: RunFolder,
        keys: Sequence[DocumentKey],
        units: Mapping[str, Sequence[Unit]],
    ) -> None:
        self._config = config
        self._folder = folder
        self._keys = sorted(keys, key=lambda key: -key.num_words)
        self._units = units
        self._launch = uuid.uuid4().hex
        pending = sum(not unit.is_done for planned in units.values() for unit in planned)
        self._tell = functools.partial(folder.write_progress, self._launch)
        self.progress = Progress(pending, self._tell)
        self.ended: str | None = None  # why there is work left
        self._plan = folder.plan_made()
        # Phase -> document -> tokens.
        self._planned = by_curves(self._plan, keys) if self._plan else {}

    def through(self, phases: Sequence[Phase], ending: Ending) -> None:
        """Work through the phases, as far as there is time. Raises what workers raise."""
        join(self._config.cluster.address)
        ending.workers_see(StopSign(self._folder.path, self._launch))
        with self.progress:
            for phase in phases:
                with suppress(EndedError):  # what was in hand is lost
                    self._phase(phase, ending)
                if ending.has_begun:
                    self.ended = ending.told
                    return

    def _phase(self, phase: Phase, ending: Ending) -> None:
        cluster = self._config.cluster
        pool = phase.pool(cluster)
        make = phase.make_worker(self._folder.path, self._launch, self._start(phase))
        for name, items in phase.executions(self._keys, self._units, pool.size):
            told = functools.partial(_told, ending, self.progress)
            stall = StallWatch(self._folder, self._launch, cluster.stall_minutes, told)
            watch = functools.partial(_look, ending, stall)
            by_plan = self._planned.get(phase.name, {})
            planned = weights(items, self._keys, by_plan)
            self.progress.start(name, planned, bool(by_plan), self._reply_costs(phase))
            self._tell(self.progress.state())
            tags = {"run": self._folder.path.name, "phase": name}
            try:
                for summary in run_items(make, items, pool, watch, tags):
                    stall.moved()
                    self.progress.add(summary)
            finally:
                self._folder.took(self.progress.took())
            if ending.has_begun:
                return

    def _start(self, phase: Phase) -> Start | None:
        if phase.engine is None:
            return None
        how = (self._config.family_folder, self._config.reply_format)
        return functools.partial(start_reader, phase.engine, *how)

    def _reply_costs(self, phase: Phase) -> float | None:
        """As the plan weighs a token of a reply; null for scoring."""
        if phase.engine is None:
            return None
        planned = (self._plan or {}).get("phases", ())
        own = [reply_costs(told) for told in planned if told["phase"] == phase.name]
        return own[0] if own else REPLY_COSTS


def _look(ending: Ending, stall: StallWatch) -> None:
    ending.look()
    stall.look()


def _told(ending: Ending, progress: Progress, workers: list[dict[str, Any]]) -> None:
    progress.alive(workers)
    ending.seen(workers)
