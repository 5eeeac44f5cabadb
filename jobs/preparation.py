"""What a command does before any work: the steps of a run, its phases, its documents, their units.

`run`, `plan` and `bench` all begin so.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from jobs.config import RunConfig
from jobs.loading import load_corpus
from jobs.phases import Phase, phases
from jobs.step_graph import Placed, run_steps
from pipeline.place import AnyPath
from pipeline.steps import Step
from pipeline.store import Shards
from pipeline.units import Committed, DocumentKey, Unit, plan_document


@dataclass(frozen=True)
class Prepared:
    """A run as far as it can be known before work. `units` are those of each document, done and
    not, in the order of `steps`; `keys` are its documents, in corpus order."""

    config: RunConfig
    shards: Shards
    placed: Sequence[Placed]
    phases: Sequence[Phase]
    keys: Sequence[DocumentKey]
    units: Mapping[str, Sequence[Unit]]
    committed: Committed

    @property
    def steps(self) -> list[Step]:
        """Upstream first; the first two load the corpus."""
        return [step for step, _ in self.placed]

    def planned_for(self, key: DocumentKey) -> list[Unit]:
        """The units of a document with some other questions."""
        per_unit = self.config.questions_per_unit
        return plan_document(self.steps, key, self.committed, per_unit)

    def planned(self) -> list[Unit]:
        """All units, document by document."""
        return [unit for units in self.units.values() for unit in units]


def prepare(
    config: RunConfig,
    warehouse: AnyPath,
    warn: Callable[[str], None],
    shards: Shards | None = None,
) -> Prepared:
    """Load the corpus into the warehouse, or into `shards` of its own, and plan every unit.

    `warn` gets a line for each bad row. Raises UsageError where config or corpus are of no use.
    """
    placed, shards = run_steps(config), shards or Shards(warehouse)
    steps = [step for step, _ in placed]
    keys = load_corpus(config, shards, steps, warn)
    committed = shards.committed(steps)
    units = {
        key.document_id: plan_document(steps, key, committed, config.questions_per_unit)
        for key in keys
    }
    return Prepared(config, shards, placed, phases(placed), keys, units, committed)
