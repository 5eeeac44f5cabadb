"""The worker pool of an execution: resources per worker, and how many workers a cluster fits."""

from dataclasses import dataclass

from pipeline.cluster.joining import join, nodes
from pipeline.core.errors import UsageError
from pipeline.core.settings import ClusterSettings

_MANY = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Pool:
    """The resources of a worker pool: `cpus` and `gpus` are per worker; `section` is the config
    section that sets them."""

    section: str
    min_workers: int
    max_workers: int | None  # None: as many as the cluster fits
    cpus: float
    gpus: float
    slots: int  # concurrent requests of a worker at its engine
    cluster: ClusterSettings

    def most(self, size: int) -> int:
        """The most workers that a pool of initially `size` workers may grow to."""
        return self.max_workers or size

    def size(self) -> int:
        """The initial number of workers: as many as the cluster fits now. Joins the cluster.

        Raises UsageError where fewer than `min_workers` fit and the cluster does not autoscale.
        """
        join(self.cluster.address)
        room = sum(self._on(node) for node in nodes())
        if room < self.min_workers and not self.cluster.autoscales:
            raise self._too_small()
        return min(self.max_workers or _MANY, max(room, self.min_workers))

    def _on(self, resources: dict[str, float]) -> int:
        """The workers that fit on one machine; a worker's GPUs must all be on the same one."""
        needs = {"GPU": self.gpus, "CPU": self.cpus}
        return min(
            int(resources.get(kind, 0.0) / need + 1e-9) if need else _MANY
            for kind, need in needs.items()
        )

    def _too_small(self) -> UsageError:
        """The error, naming the resource that is short; GPUs first."""
        needs = {"GPU": self.gpus, "CPU": self.cpus}
        there = {kind: sum(node.get(kind, 0.0) for node in nodes()) for kind in needs}
        lacking = [kind for kind in needs if there[kind] < self.min_workers * needs[kind]]
        kind = lacking[0] if lacking else ("GPU" if self.gpus else "CPU")
        spread = "" if lacking else f" on {len(nodes())} machines, not enough on one"
        need = needs[kind]
        return UsageError(
            f"{self.section}.{kind.lower()}s_per_worker={need:g}: {self.min_workers} workers of "
            f"that size need {self.min_workers * need:g} {kind}s, there are {there[kind]:g}"
            f"{spread}; lower it"
        )
