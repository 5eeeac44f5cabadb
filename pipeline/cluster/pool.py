"""The workers of an execution, and how many of them a cluster has room for."""

from dataclasses import dataclass

from pipeline.cluster.joining import join, nodes
from pipeline.errors import UsageError
from pipeline.settings import ClusterSettings

_MANY = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Pool:
    """`section` is where a user sets what a worker needs."""

    section: str
    min_workers: int
    max_workers: int | None  # null: as many as there is room for
    cpus: float
    gpus: float
    slots: int  # requests that a worker has at its engine
    cluster: ClusterSettings

    def most(self, size: int) -> int:
        """The workers there may be once a cluster that begins with `size` has grown."""
        return self.max_workers or size

    def size(self) -> int:
        """The workers to begin with: those there is room for now. Joins the cluster.

        Raises UsageError where it is too small, and will not grow by itself.
        """
        join(self.cluster.address)
        room = sum(self._on(node) for node in nodes())
        if room < self.min_workers and not self.cluster.autoscales:
            raise self._too_small()
        return min(self.max_workers or _MANY, max(room, self.min_workers))

    def _on(self, resources: dict[str, float]) -> int:
        """A worker is on one machine, with all its GPUs."""
        needs = {"GPU": self.gpus, "CPU": self.cpus}
        return min(
            int(resources.get(kind, 0.0) / need + 1e-9) if need else _MANY
            for kind, need in needs.items()
        )

    def _too_small(self) -> UsageError:
        """What there is not enough of; the GPUs first."""
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
