"""Ray Data around workers: summaries come back, trouble comes back as ours, nothing is endless."""

import asyncio
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import ray

from pipeline.cluster import Pool, execute_documents
from pipeline.core.errors import AccountingError, EngineError, StartError, UsageError
from pipeline.core.unit_progress import UsageCounters
from pipeline.worker.executor import Summary
from pipeline.worker.in_flight import Placement
from tests.support.clusters import LOCAL
from tests.support.command import refused

POOL = Pool(section="engine", min_workers=1, max_workers=1, cpus=1, gpus=0, slots=1, cluster=LOCAL)


@pytest.fixture(autouse=True, scope="module")
def ray_of_our_own() -> Iterator[None]:
    yield
    ray.shutdown()  # the one that this process started, and no other


class Troubled:
    """A worker for which the document `bad` is trouble, and `slow` takes ten minutes."""

    def __init__(self, trouble: Exception | None, placement: Placement) -> None:
        self.usage = UsageCounters()
        self._trouble = trouble

    async def work(self, document_id: str, units: Any) -> Summary:
        if document_id == "bad" and self._trouble is not None:
            raise self._trouble
        if document_id == "slow":
            await asyncio.sleep(600)
        return Summary(document_id)


def worker(trouble: Exception | None = None) -> Any:
    """Makes such workers."""
    return functools.partial(Troubled, trouble)


def through(make: Any, *documents: str) -> tuple[list[str], Exception | None]:
    """The documents that came back, and what was raised at the end."""
    done: list[str] = []
    items: Any = [(document, []) for document in documents]
    try:
        execute_documents(make, items, POOL, lambda: None, {}, lambda s: done.append(s.document_id))
    except (AccountingError, EngineError) as error:
        return done, error
    return done, None


def ignored(summary: Summary) -> None:
    pass


@pytest.mark.slow
def test_every_document_comes_back_once() -> None:
    done, error = through(worker(), "a", "b", "c", "bad")
    assert (sorted(done), error) == (["a", "b", "bad", "c"], None)


@pytest.mark.slow
def test_trouble_with_one_document_costs_no_other() -> None:
    trouble = AccountingError("pages do not tile the text")
    done, error = through(worker(trouble), "bad", "a", "b", "c")
    assert sorted(done) == ["a", "b", "c"]
    assert isinstance(error, AccountingError)
    assert str(error) == "pages do not tile the text"


@pytest.mark.slow
def test_an_engine_that_cannot_start_ends_it() -> None:
    _, error = through(worker(StartError("no such model")), "bad")
    assert isinstance(error, StartError)
    assert str(error) == "no such model"


def test_who_watches_may_end_it() -> None:
    """As the watch for stalls does; the document in flight would take ten minutes more."""

    def watch() -> None:
        raise EngineError("nothing was finished")

    with pytest.raises(EngineError, match="nothing was finished"):
        execute_documents(worker(), [("slow", [])], POOL, watch, {}, ignored)


@pytest.mark.parametrize(
    ("pool", "says"),
    [
        ({"gpus": 2}, "engine.gpus_per_worker=2: 1 workers of that size need 2 GPUs, there are 0"),
        ({"cpus": 9999}, "engine.cpus_per_worker=9999: 1 workers of that size need 9999 CPUs"),
    ],
)
def test_a_worker_there_is_no_room_for_is_refused(pool: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        Pool(**{**vars(POOL), **pool}).size()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["cluster=ray", "cluster.address=http://127.0.0.1:8265"], "gistmill submit sends a run"),
        (["cluster=ray", "cluster.address=127.0.0.1:1"], "cluster.address=127.0.0.1:1: no Ray to"),
        (["cluster=slurm"], "cluster=slurm: gistmill submit sends a run there"),
    ],
)
def test_a_cluster_that_cannot_be_joined_is_refused(
    tmp_path: Path, words: list[str], says: str
) -> None:
    ray.shutdown()  # else this process stays where it is
    assert says in refused("run", *words, f"warehouse={tmp_path / 'w'}")
    assert not (tmp_path / "w").exists()


@pytest.mark.slow
def test_a_worker_that_does_not_see_the_warehouse_ends_it() -> None:
    trouble = UsageError("warehouse=w: not visible from n2")
    items: Any = [(name, []) for name in ("bad", "a")]
    with pytest.raises(UsageError, match="not visible from n2"):
        execute_documents(worker(trouble), items, POOL, lambda: None, {}, ignored)
