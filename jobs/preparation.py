"""Prepare a run before execution: its steps, phases, documents and units.

Used by `run`, `plan` and `bench`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from jobs.loading import load_corpus
from jobs.phases import Phase, phases
from jobs.predictions import check_own_inputs
from jobs.repeats import equal_in_repeats
from jobs.run_config import RunConfig
from jobs.step_graph import Placed, run_steps
from pipeline.place import AnyPath
from pipeline.steps import Step
from pipeline.store import Shards
from pipeline.units import Committed, DocumentKey, Retries, Unit, plan_document


@dataclass(frozen=True)
class Prepared:
    """A run before its execution.

    `keys`: its documents, in corpus order. `units`: by document_id, done and pending, in the order
    of `steps`.
    """

    config: RunConfig
    shards: Shards
    placed: Sequence[Placed]
    phases: Sequence[Phase]
    keys: Sequence[DocumentKey]
    units: Mapping[str, Sequence[Unit]]
    committed: Committed

    @property
    def steps(self) -> list[Step]:
        """The steps in dependency order; the first two load the corpus."""
        return [step for step, _ in self.placed]

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
    retries: Retries | None = None,
) -> Prepared:
    """Load the corpus into the warehouse, or into the given `shards`, and plan every unit.

    `retries`: the committed units that are planned once more, by default none. `warn` gets a line
    per bad row, and on missing answers and equal repeats. Raises UsageError where config, corpus or
    predictions cannot be used.
    """
    placed, shards = run_steps(config), shards or Shards(warehouse)
    steps = [step for step, _ in placed]
    keys = load_corpus(config, shards, steps, warn)
    check_own_inputs(config, steps, keys, warn)
    if equal := equal_in_repeats(config, placed):
        warn(equal)
    committed = replace(shards.committed(steps), retries=retries)
    units = {
        key.document_id: plan_document(steps, key, committed, config.questions_per_unit)
        for key in keys
    }
    return Prepared(config, shards, placed, phases(placed), keys, units, committed)
