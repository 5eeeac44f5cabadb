"""As many workers as the cluster has GPUs and CPUs for, between the least and the most."""

from collections.abc import Iterator

import pytest
import ray

from pipeline.cluster import Pool
from pipeline.core.errors import UsageError
from tests.support.clusters.cluster_settings import LOCAL


@pytest.fixture(autouse=True, scope="module")
def four_gpus() -> Iterator[None]:
    """A Ray that believes it has four GPUs and eight CPUs."""
    ray.shutdown()  # of the tests before
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("RAY_OVERRIDE_RESOURCES")
        ray.init(address="local", num_cpus=8, num_gpus=4, include_dashboard=False)
    yield
    ray.shutdown()


def pool(gpus: float, cpus: float | None = 1, least: int = 1, most: int | None = None) -> Pool:
    return Pool(
        section="engine", min_workers=least, max_workers=most, cpus=cpus, gpus=gpus, slots=8,
        cluster=LOCAL,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "workers"),
    [
        (pool(gpus=2), 2),
        (pool(gpus=0.5), 8),
        (pool(gpus=1, cpus=3), 2),
        (pool(gpus=1, most=3), 3),
        (pool(gpus=1, most=9), 4),
        (pool(gpus=0), 8),
        (pool(gpus=0, cpus=0, most=2), 2),
        (pool(gpus=0, cpus=None), 1),
    ],
)
def test_as_many_as_there_is_room_for(asked: Pool, workers: int) -> None:
    assert asked.size() == workers


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (pool(gpus=8), "engine.gpus_per_worker=8: 1 workers of that size need 8 GPUs, there are 4"),
        (pool(gpus=1, least=5), "5 workers of that size need 5 GPUs, there are 4; lower it"),
        (pool(gpus=0, cpus=9), "engine.cpus_per_worker=9: 1 workers of that size need 9 CPUs"),
    ],
)
def test_fewer_than_the_least_are_refused(asked: Pool, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        asked.size()
