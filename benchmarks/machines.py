"""Measure a phase on a Ray of several machines, all nodes on this one; each has an engine, also the
driver's."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ray
from ray.cluster_utils import Cluster

from benchmarks.figures import Figure, figure_with_bar
from benchmarks.reading import read
from benchmarks.schedule import AT_MOST, lower_bound, write_corpus
from jobs.config.run_config import RunConfig
from jobs.graph.read_run import read_run
from pipeline.core.errors import UsageError
from pipeline.engines.simulated import SimulatedSettings
from pipeline.files.place import as_path

WORDS = ("corpus=tables", "rater=none", "methods=gist_only", "engine=simulated")
_MACHINES = (2, 4, 8)
_PER_ENGINE = 25  # documents; a machine has one engine


def machines(config: RunConfig, folder: Path, pairs: int) -> list[Figure]:
    """Makespan over the lower bound on so many machines, longest documents first."""
    return [_figure(config, folder / f"of-{num}", num, pairs) for num in _MACHINES]


def _figure(config: RunConfig, folder: Path, num: int, pairs: int) -> Figure:
    engine = config.engine
    if not isinstance(engine, SimulatedSettings):
        raise UsageError(f"engine={engine.name}: machines needs engine=simulated; leave it out")
    write_corpus(folder / "corpus", num * _PER_ENGINE, num * engine.sequences)
    ratios: list[float] = []
    with _nodes(num) as address:
        own = _config(config, folder / "corpus", num, address)
        for pair in range(pairs):
            reading = read(own, folder / f"warehouse-{pair}")
            ratios.append(reading.seconds / lower_bound(reading, engine))
    what = f"makespan / lower bound on {num} machines"
    return figure_with_bar("machines", what, ratios, ("at most", AT_MOST))


def _config(config: RunConfig, corpus: Path, num: int, address: str) -> RunConfig:
    of_engine = {"min_workers": num, "max_workers": num, "gpus_per_worker": 1}
    joined: Sequence[str] = ("cluster=ray", f"cluster.address={address}")
    return config.model_copy(
        update={
            "cluster": read_run(joined).config.cluster,
            "corpus": config.corpus.model_copy(update={"path": as_path(corpus)}),
            "engine": config.engine.model_copy(update=of_engine),
        }
    )


@contextmanager
def _nodes(num: int) -> Iterator[str]:
    """A Ray of so many nodes with a GPU each, by name only; yields its address."""
    ray.shutdown()  # of another part
    head = {"num_cpus": 2, "num_gpus": 1, "include_dashboard": False}
    cluster: Any = Cluster(initialize_head=True, head_node_args=head)
    try:
        for _ in range(num - 1):
            cluster.add_node(num_cpus=2, num_gpus=1)
        yield cluster.address
    finally:
        ray.shutdown()
        cluster.shutdown()
