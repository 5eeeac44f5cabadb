"""The backends that execute the documents of a phase: Ray, or one worker in this process."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from jobs.graph.phases import Phase
from pipeline.core.settings import ClusterSettings
from pipeline.work.units import DocumentWork
from pipeline.worker.executor import Summary
from pipeline.worker.inline import execute_inline
from pipeline.worker.outcomes import DOCUMENTS_OVER_SLOTS, MakeWorker

Execute = Callable[[Sequence[DocumentWork], Callable[[], None], Callable[[Summary], None]], None]
"""Executes documents; calls the second argument every second, and the third with summaries."""


class Backend(Protocol):
    """A place where workers run."""

    def num_workers(self, phase: Phase) -> int:
        """The workers that the phase begins with. Raises UsageError if too few fit."""
        ...

    def executor(self, phase: Phase, make: MakeWorker, tags: dict[str, str]) -> Execute:
        """`tags` label the metrics that workers export."""
        ...


def backend(cluster: ClusterSettings) -> Backend:
    """The backend of a cluster, joined. Raises UsageError if there is no Ray to join, ClusterError
    if a local one does not start."""
    return Inline(cluster) if cluster.name == "inline" else OnRay(cluster)


class Inline:
    """One worker in this process, without Ray."""

    def __init__(self, cluster: ClusterSettings) -> None:
        self._cluster = cluster

    def num_workers(self, phase: Phase) -> int:
        return 1

    def executor(self, phase: Phase, make: MakeWorker, tags: dict[str, str]) -> Execute:
        in_flight = phase.slots + DOCUMENTS_OVER_SLOTS
        return partial(execute_inline, make, in_flight, 60 * self._cluster.grace_minutes)


class OnRay:
    """Ray Data, on a Ray that is started here or joined."""

    def __init__(self, cluster: ClusterSettings) -> None:
        from pipeline.cluster import join  # imported here, as ray takes a second

        self._cluster = cluster
        join(cluster.address)

    def num_workers(self, phase: Phase) -> int:
        return phase.pool(self._cluster).size()

    def executor(self, phase: Phase, make: MakeWorker, tags: dict[str, str]) -> Execute:
        from pipeline.cluster import execute_documents

        return partial(execute_documents, make, phase.pool(self._cluster), tags)
