"""Prepare a run before execution: its steps, phases, documents and units.

Used by `run`, `plan` and `bench`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from jobs.config.run_config import RunConfig
from jobs.graph.loading import load_corpus
from jobs.graph.own_inputs import check_own_inputs
from jobs.graph.phases import Phase, phases
from jobs.graph.repeats import equal_in_repeats
from jobs.graph.step_graph import StepWithEngine, run_steps
from pipeline.files.place import AnyPath
from pipeline.store import Shards
from pipeline.work.steps import Step
from pipeline.work.units import Committed, DocumentKey, RetryPolicy, Unit, plan_document


@dataclass(frozen=True)
class Prepared:
    """A run before its execution.

    `keys`: its documents, in corpus order. `units`: by document_id, done and pending, in the order
    of `steps`.
    """

    config: RunConfig
    shards: Shards
    steps_with_engines: Sequence[StepWithEngine]
    phases: Sequence[Phase]
    keys: Sequence[DocumentKey]
    units: Mapping[str, Sequence[Unit]]
    committed: Committed

    @property
    def steps(self) -> list[Step]:
        """The steps in dependency order; the first two load the corpus."""
        return [step for step, _ in self.steps_with_engines]

    def planned_for(self, key: DocumentKey) -> list[Unit]:
        """The units of a document whose key has other questions than in `keys`."""
        per_unit = self.config.questions_per_unit
        return plan_document(self.steps, key, self.committed, per_unit)

    def planned(self) -> list[Unit]:
        """All units, by document."""
        return [unit for units in self.units.values() for unit in units]


def prepare(
    config: RunConfig,
    warehouse: AnyPath,
    warn: Callable[[str], None],
    shards: Shards | None = None,
    retry_policy: RetryPolicy | None = None,
) -> Prepared:
    """Load the corpus into the warehouse, or into the given `shards`, and plan every unit.

    `retry_policy`: the committed units that are planned again, by default none. `warn` gets a line
    per bad row, and on missing answers and equal repeats. Raises UsageError if config, corpus or
    predictions cannot be used.
    """
    steps_with_engines, shards = run_steps(config), shards or Shards(warehouse)
    steps = [step for step, _ in steps_with_engines]
    keys = load_corpus(config, shards, steps, warn)
    check_own_inputs(config, steps, keys, warn)
    if equal := equal_in_repeats(config, steps_with_engines):
        warn(equal)
    committed = replace(shards.committed(steps), retry_policy=retry_policy)
    units = {
        key.document_id: plan_document(steps, key, committed, config.questions_per_unit)
        for key in keys
    }
    return Prepared(
        config, shards, steps_with_engines, phases(steps_with_engines), keys, units, committed
    )
