"""Workers on Ray Data and inline: summaries come back, trouble as ours, nothing is endless."""

import asyncio
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
import ray

from pipeline.cluster import Pool, execute_documents
from pipeline.core.calls import UsageCounters
from pipeline.core.errors import (
    AccountingError,
    CommandError,
    DamagedError,
    EngineError,
    StartError,
    UsageError,
)
from pipeline.work.units import DocumentWork, work_on
from pipeline.worker.crashes import Placement
from pipeline.worker.progress import Summary
from pipeline.worker.worker import ShouldStop, execute_inline
from tests.support.clusters.cluster_settings import LOCAL
from tests.support.command import refused

POOL = Pool(section="engine", min_workers=1, max_workers=1, cpus=1, gpus=0, slots=1, cluster=LOCAL)


@pytest.fixture(autouse=True, scope="module")
def ray_of_our_own() -> Iterator[None]:
    yield
    ray.shutdown()  # the one that this process started, and no other


class Troubled:
    """A worker for which the document `bad` is trouble, and `slow` takes ten minutes."""

    def __init__(self, trouble: Any, placement: Placement) -> None:
        self.usage = UsageCounters()
        self._trouble = trouble

    async def work(self, document_id: str, units: Any, num_words: int) -> Summary:
        if document_id == "bad" and self._trouble is not None:
            raise self._trouble() if callable(self._trouble) else self._trouble
        if document_id == "slow":
            await asyncio.sleep(600)
        return Summary(document_id)

    async def close(self) -> None:
        pass


def worker(trouble: Any = None) -> Any:
    """Makes such workers."""
    return functools.partial(Troubled, trouble)


BACKENDS: dict[str, Any] = {
    "ray": functools.partial(execute_documents, pool=POOL, tags={}),
    "inline": functools.partial(execute_inline, num_in_flight=2),
}
of_both = pytest.mark.parametrize(
    "backend", [pytest.param("ray", marks=pytest.mark.slow), "inline"]
)


def through(
    backend: str, make: Any, *documents: str, should_stop: ShouldStop = lambda: None
) -> tuple[list[str], CommandError | None]:
    """The documents that came back, and the error that ended it."""
    done: list[str] = []
    failed: list[CommandError] = []

    def finished(outcome: Summary | CommandError) -> None:
        if isinstance(outcome, Summary):
            done.append(outcome.document_id)
        else:
            failed.append(outcome)

    work = work_on([DocumentWork(document, [], 1.0, 1) for document in documents])
    try:
        BACKENDS[backend](make, work=work, should_stop=should_stop, done=finished)
    except CommandError as error:
        return done, error
    return done, failed[0] if failed else None


TROUBLES = {  # with one document: what comes back, and the error that ends the run at once or later
    "none": (None, ["a", "b", "bad"], ""),
    "one document's": (AccountingError("pages do not tile the text"), ["a", "b"],
                       "AccountingError: pages do not tile the text"),
    "a file's": (functools.partial(DamagedError, "w/a.parquet", "is torn"), ["a", "b"],
                 "DamagedError: w/a.parquet: is torn"),
    "no engine": (StartError("no such model"), None, "StartError: no such model"),
    "no warehouse": (UsageError("warehouse=w: not visible from n2"), None,
                     "UsageError: warehouse=w: not visible from n2"),
}  # fmt: skip


@of_both
@pytest.mark.parametrize("trouble", TROUBLES)
def test_trouble_with_one_document(backend: str, trouble: str) -> None:
    """Every document comes back once; what concerns all of them ends the execution."""
    error, expected, told = TROUBLES[trouble]
    done, raised = through(backend, worker(error), "bad", "a", "b")
    assert (f"{type(raised).__name__}: {raised}" if raised else "") == told
    assert expected is None or sorted(done) == expected


class Failing:
    """A worker whose engine dies with the document `bad` in flight, once."""

    made: ClassVar[list["Failing"]] = []

    def __init__(self, placement: Placement) -> None:
        self.usage = UsageCounters()
        self.is_closed = False
        self.made.append(self)

    async def work(self, document_id: str, units: Any, num_words: int) -> Summary:
        if document_id == "bad" and len(self.made) == 1:
            raise EngineError("the engine is dead")
        return Summary(document_id)

    async def close(self) -> None:
        self.is_closed = True


def test_an_engine_that_dies_is_started_again_inline() -> None:
    Failing.made.clear()
    done, error = through("inline", Failing, "a", "bad", "b", "c")
    assert (sorted(done), error) == (["a", "b", "bad", "c"], None)
    assert [worker.is_closed for worker in Failing.made] == [True, True]


def test_a_document_that_is_cancelled_is_not_left_out_unseen() -> None:
    _, error = through("inline", worker(asyncio.CancelledError()), "bad", "a")
    assert str(error) == "a document was cancelled; run the same command"


@of_both
def test_who_watches_may_end_it(backend: str) -> None:
    """As for a stall; the document in flight would take ten minutes more."""

    stalled = EngineError("nothing was finished")
    assert through(backend, worker(), "slow", should_stop=lambda: stalled) == ([], stalled)


def test_a_cluster_that_cannot_be_joined_is_refused(tmp_path: Path) -> None:
    ray.shutdown()  # else this process stays where it is
    words = ["cluster=ray", "cluster.address=127.0.0.1:1", f"warehouse={tmp_path / 'w'}"]
    assert "cluster.address=127.0.0.1:1: no Ray to join" in refused("run", *words)
    assert not (tmp_path / "w").exists()
