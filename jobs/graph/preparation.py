"""Prepare a run before execution: load its documents and plan their units, one by one.

Used by `run`, `plan` and `bench`.
"""

import hashlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from jobs.graph.loading import OwnInputs, load_corpus
from jobs.graph.resolved_run import ResolvedRun
from jobs.graph.run_plan import RunPlan
from pipeline.files.place import AnyPath
from pipeline.store import Shards
from pipeline.work.executions import PlannedDocument
from pipeline.work.stage import Stage
from pipeline.work.units import Committed, RetryPolicy


class CorpusSha:
    """The hash of every document and question row of a corpus: of the hashes that are added, one a
    document, in their order."""

    def __init__(self) -> None:
        self._sha = hashlib.sha256()

    def add(self, rows_sha: str) -> None:
        """Add a document and its questions."""
        self._sha.update(rows_sha.encode())

    def digest(self) -> str:
        """The hash of what was added, 12 hex digits."""
        return self._sha.hexdigest()[:12]


@dataclass(frozen=True)
class Prepared:
    """A run before its execution. `committed`: what the store held before. `left`: writes the rest
    of the plan, a file at each step, if it is not complete; then `corpus` is, too."""

    run: ResolvedRun
    shards: Shards
    committed: Committed
    plan: RunPlan
    corpus: CorpusSha
    left: Iterator[None]


def prepare(
    run: ResolvedRun,
    warehouse: AnyPath,
    warn: Callable[[str], None],
    shards: Shards | None = None,
    retry_policy: RetryPolicy | None = None,
    plan: RunPlan | None = None,
) -> Prepared:
    """Load the corpus into the warehouse, or into the given `shards`, whose loaded rows stay
    pending, and plan every unit, but those of documents that the plan keeps.

    `retry_policy`: the committed units that are planned again, by default none. `plan`: where the
    plan is written, and whether a part of it is left. `warn` gets a line per bad row, and on
    missing answers. Raises UsageError if corpus or predictions cannot be used, or a step cannot be
    executed on this machine.
    """
    run.refuse_unusable()
    steps, are_kept, shards = run.steps, shards is None, shards or Shards(warehouse)
    committed = replace(shards.committed(steps), retry_policy=retry_policy)
    prepared = Prepared(run, shards, committed, plan or RunPlan(steps), CorpusSha(), iter(()))
    left = prepared.plan.write(_planned(prepared, are_kept, warn))
    for _ in left:
        if prepared.plan.seconds < math.inf:
            break
    return replace(prepared, left=left)


def _planned(
    prepared: Prepared, are_kept: bool, warn: Callable[[str], None]
) -> Iterator[PlannedDocument]:
    """Every document, once it is loaded, with its units, but for those that the plan keeps.
    `are_kept`: its rows are committed now."""
    run, shards, committed, plan = prepared.run, prepared.shards, prepared.committed, prepared.plan
    config, steps = run.config, run.steps
    loading, own_inputs = {step.id for step in steps[:2]}, OwnInputs(config, steps)
    stages = [type(step.stage) for step in steps if step.stage]
    if all(stage.inputs_per_question is Stage.inputs_per_question for stage in stages):
        plan.look_for_finished(committed)  # else a stage's own inputs may have changed
    for rows_sha, key, planned in load_corpus(config, shards, steps, committed, warn, plan.keeps):
        prepared.corpus.add(rows_sha)
        if key is None:
            continue
        own_inputs.add(key.questions)
        units = [
            replace(unit, is_done=True) if are_kept and unit.step_id in loading else unit
            for unit in planned
        ]
        usable = 0 if key.is_bad else sum(not question.is_bad for question in key.questions)
        plan_sha = plan.sha_of(rows_sha)
        yield PlannedDocument(key.document_id, key.num_words, key.is_bad, usable, units, plan_sha)
    own_inputs.check(warn)
