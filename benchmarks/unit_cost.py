"""Measure the CPU time that a unit of work takes outside the engine, in short documents."""

import sys
from operator import add
from pathlib import Path
from resource import RUSAGE_SELF, getrusage

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


_WARM_UP = 10  # documents of a run that is not counted: it imports what units need


def units(config: RunConfig, folder: Path, pairs: int) -> list[Figure]:
    """CPU milliseconds of this process per unit, from the first to the last that a run commits, and
    those of them that the kernel takes."""
    if config.cluster.name != "inline":
        raise UsageError(f"cluster={config.cluster.name}: units takes inline; leave it out")
    _milliseconds(config.model_copy(update={"limit": _WARM_UP}), folder / "warm")
    costs = [_milliseconds(config, folder / f"{i}") for i in range(pairs)]
    user, system = zip(*costs, strict=True)
    return [
        figure_without_bar("units", "CPU milliseconds of a unit", [*map(add, user, system)]),
        figure_without_bar("units", "of them in the kernel, mostly for its files", system),
    ]


def _milliseconds(config: RunConfig, warehouse: Path) -> tuple[float, float]:
    """CPU milliseconds per unit, of the program and of the kernel."""
    prepared = prepare(resolve(config), warehouse, _warn)
    run_folder = RunFolder(prepared.shards.warehouse, "bench")
    run_folder.start(run_manifest(prepared.run), provenance(None), has_work=True)
    executor = RunExecutor(prepared, run_folder)
    before = getrusage(RUSAGE_SELF)
    with GracefulStop(config.cluster) as stop:
        executor.execute(stop)
    after = getrusage(RUSAGE_SELF)
    took = (after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime)
    num_units = prepared.plan.num_pending
    return 1000 * took[0] / num_units, 1000 * took[1] / num_units


def _warn(line: str) -> None:
    sys.stderr.write(line + "\n")
