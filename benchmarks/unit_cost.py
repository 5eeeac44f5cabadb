"""Measure the CPU time that a unit of work takes outside the engine, in short documents."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.figures import Figure, figure_without_bar
from jobs.config.run_config import RunConfig
from jobs.graph.manifest import run_manifest
from jobs.graph.preparation import prepare
from jobs.graph.resolved_run import resolve
from jobs.run.execute import RunExecutor
from jobs.run.graceful_stop import GracefulStop
from jobs.run.provenance import provenance
from pipeline.core.errors import UsageError
from pipeline.store.runs.run_folder import RunFolder

# A page and a question per document: five units with three calls, one to paginate it, one for its
# gist and one for the answer. The engine replies at once.
WORDS = (
    "corpus=synthetic", "corpus.num_documents=300", "corpus.words=450", "corpus.skew=0.0",
    "corpus.questions=1", "cluster=inline", "rater=none", "methods=gist_only", "engine=simulated",
    "engine.prefill_tokens_per_second=1e9", "engine.decode_tokens_per_second=1e9",
)  # fmt: skip


def units(config: RunConfig, folder: Path, pairs: int) -> list[Figure]:
    """CPU milliseconds of this process per unit, from the first to the last that a run commits."""
    if config.cluster.name != "inline":
        raise UsageError(f"cluster={config.cluster.name}: units takes inline; leave it out")
    values: Sequence[float] = [_milliseconds(config, folder / f"{i}") for i in range(pairs)]
    return [figure_without_bar("units", "CPU milliseconds of a unit", values)]


def _milliseconds(config: RunConfig, warehouse: Path) -> float:
    prepared = prepare(resolve(config), warehouse, _warn)
    run_folder = RunFolder(prepared.shards.warehouse, "bench")
    run_folder.start(run_manifest(prepared.run), provenance(None), has_work=True)
    executor = RunExecutor(prepared, run_folder)
    before = time.process_time()
    with GracefulStop(config.cluster) as stop:
        executor.execute(stop)
    return 1000 * (time.process_time() - before) / prepared.plan.num_pending


def _warn(line: str) -> None:
    sys.stderr.write(line + "\n")
