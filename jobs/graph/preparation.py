"""Prepare a run before execution: its documents and units.

Used by `run`, `plan` and `bench`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from jobs.graph.check_config import equal_in_repeats
from jobs.graph.loading import check_own_inputs, load_corpus, match_questions
from jobs.graph.resolved_run import ResolvedRun
from pipeline.files.place import AnyPath
from pipeline.store import Shards
from pipeline.work.input_hashes import DocumentKey
from pipeline.work.units import Committed, RetryPolicy, Unit, plan_document


@dataclass(frozen=True)
class Prepared:
    """A run before its execution.

    `keys`: its documents, in corpus order. `units`: by document_id, done and pending, in the order
    of the run's steps.
    """

    run: ResolvedRun
    shards: Shards
    keys: Sequence[DocumentKey]
    units: Mapping[str, Sequence[Unit]]
    committed: Committed

    def planned(self) -> list[Unit]:
        """All units, by document."""
        return [unit for units in self.units.values() for unit in units]


def prepare(
    run: ResolvedRun,
    warehouse: AnyPath,
    warn: Callable[[str], None],
    shards: Shards | None = None,
    retry_policy: RetryPolicy | None = None,
) -> Prepared:
    """Load the corpus into the warehouse, or into the given `shards`, and plan every unit.

    `retry_policy`: the committed units that are planned again, by default none. `warn` gets a line
    per bad row, and on missing answers and equal repeats. Raises UsageError if corpus or
    predictions cannot be used, or a step cannot be executed on this machine.
    """
    run.refuse_unusable()
    config, steps, shards = run.config, run.steps, shards or Shards(warehouse)
    match_questions(config, steps)
    keys, known = load_corpus(config, shards, steps, warn)
    check_own_inputs(config, steps, keys, warn)
    if equal := equal_in_repeats(config, run.steps_with_engines):
        warn(equal)
    committed = replace(shards.committed(steps, known), retry_policy=retry_policy)
    units = {
        key.document_id: plan_document(steps, key, committed, config.questions_per_unit)
        for key in keys
    }
    return Prepared(run, shards, keys, units, committed)
