"""A machine that is lost takes its worker along: its documents are executed again, no suspects."""

import functools
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import ray
from ray.cluster_utils import Cluster

from pipeline.cluster import Pool, execute_documents
from pipeline.core.calls import UsageCounters
from pipeline.core.errors import CommandError
from pipeline.work.units import DocumentWork, work_on
from pipeline.worker.crashes import InFlight, Placement
from pipeline.worker.progress import Summary
from tests.support.clusters.cluster_settings import cluster

pytestmark = [pytest.mark.slow, pytest.mark.sampled]


@pytest.fixture
def machines() -> Iterator[Cluster]:
    """A Ray with a head that has no room for workers, and two machines that have."""
    ray.shutdown()
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("RAY_OVERRIDE_RESOURCES", raising=False)
        made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
        for _ in range(2):
            made.add_node(num_cpus=1)
        yield made
        ray.shutdown()
        made.shutdown()  # type: ignore[no-untyped-call]  # not annotated by Ray


class Lost:
    """A worker that loses its machine, or only its process, the first time."""

    def __init__(self, folder: Path, what: str, placement: Placement) -> None:
        self.usage = UsageCounters()
        self._folder, self._what = folder, what
        self._markers = InFlight(folder / "markers", placement)

    async def work(self, document_id: str, units: Any, num_words: int) -> Summary:
        crashes = self._markers.crashes(document_id)
        async with self._markers.attempt(document_id, crashes):
            if not (self._folder / "lost").exists():
                (self._folder / "lost").touch()
                if self._what == "machine":
                    os.kill(os.getppid(), signal.SIGKILL)  # the raylet's, as all its processes'
                os._exit(1)
        (self._folder / "found").write_text(json.dumps(crashes.together))
        return Summary(document_id)

    async def close(self) -> None:
        pass


@pytest.mark.parametrize(("what", "together"), [("machine", None), ("process", 1)])
def test_only_a_crash_makes_suspects(
    tmp_path: Path, machines: Cluster, what: str, together: int | None
) -> None:
    settings = cluster("cluster=ray", f"cluster.address={machines.address}")
    pool = Pool(
        section="engine", min_workers=1, max_workers=1, cpus=1, gpus=0, slots=1, cluster=settings
    )
    make: Any = functools.partial(Lost, tmp_path, what)

    work = work_on([DocumentWork("d1", [], 1.0, 1)])
    done: list[Summary | CommandError] = []
    execute_documents(make, pool, {}, work, lambda: None, done.append)
    assert done == [Summary("d1", words=1.0)]
    assert json.loads((tmp_path / "found").read_text()) == together
