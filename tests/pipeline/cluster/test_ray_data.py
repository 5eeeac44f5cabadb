"""Workers on Ray Data and inline: as many as there is room for; blocks of documents; summaries come
back, trouble as ours, nothing is endless."""

import asyncio
import functools
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, ClassVar

import pytest
import ray

from pipeline.cluster import Pool, execute_documents
from pipeline.cluster.ray_data import blocks, words_per_block
from pipeline.core.errors import (
    AccountingError,
    CommandError,
    DamagedError,
    EndedError,
    EngineError,
    StartError,
    UsageError,
)
from pipeline.work.units import DocumentWork, work_on
from pipeline.worker.crashes import Placement
from pipeline.worker.progress import Summary
from pipeline.worker.worker import ShouldStop, execute_inline
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
    return Pool(section="engine", min_workers=least, max_workers=most, cpus=cpus, gpus=gpus,
                slots=1, cluster=LOCAL)  # fmt: skip


def test_as_many_as_there_is_room_for() -> None:
    asked = [pool(gpus=2), pool(gpus=0.5), pool(gpus=1, cpus=3), pool(gpus=1, most=3),
             pool(gpus=1, most=9), pool(gpus=0), pool(gpus=0, cpus=0, most=2),
             pool(gpus=0, cpus=None)]  # fmt: skip
    assert [workers.size() for workers in asked] == [2, 8, 2, 3, 4, 8, 2, 1]


@pytest.mark.parametrize(
    ("asked", "line"),
    [(pool(gpus=8), "engine.gpus_per_worker=8, cpus_per_worker=1: 0 workers of that size fit on 1"),
     (pool(gpus=1, least=5), "4 workers .* with 4 GPUs and 8 CPUs in all, 5 are needed; lower one"),
     (pool(gpus=0, cpus=9), "engine.gpus_per_worker=0, cpus_per_worker=9: 0 workers of that size")],
)  # fmt: skip
def test_what_there_is_no_room_for_is_a_line(asked: Pool, line: str) -> None:
    with pytest.raises(UsageError, match=line):
        asked.size()


def dealt(words: list[float], num_workers: int) -> list[list[float]]:
    """The words of the documents in each block."""
    documents = [DocumentWork(str(number), (), size, 0) for number, size in enumerate(words)]
    of_blocks = list(blocks(documents, words_per_block(work_on(documents), num_workers)))
    assert [document for block in of_blocks for document in block] == documents, "in their order"
    return [[document.words for document in block] for block in of_blocks]


def test_short_documents_share_a_block() -> None:
    """Of 20,000 words: all work is 1,280,000, a 32nd of one worker's is 40,000, and the limit is
    less; or of fewer: 6,400 words among two workers are 100 to a block."""
    words = [500_000.0, 300_000.0, *[20_000.0] * 16, *[8_000.0] * 10, *[1_000.0] * 80]
    assert sum(words) == 1_280_000
    assert dealt(words, 1) == [
        [500_000], [300_000], *[[20_000]] * 16, *[[8_000] * 2] * 4, [8_000] * 2 + [1_000] * 4,
        *[[1_000] * 20] * 3, [1_000] * 16,
    ]  # fmt: skip
    words = [1_500.0, *[100.0] * 20, *[50.0] * 40, *[9.0] * 100]
    assert sum(words) == 6_400
    assert dealt(words, 2) == [[1_500], *[[100]] * 20, *[[50, 50]] * 20, *[[9] * 11] * 9, [9]]
    for num, num_workers in ((1, 1), (1, 64), (25, 1), (200, 64)):  # few are alone
        assert dealt([700.0] * num, num_workers) == [[700.0]] * num


class Troubled:
    """A worker for which the document `bad` is trouble, and `slow` takes ten minutes."""

    def __init__(self, trouble: Any, placement: Placement) -> None:
        self.is_closed = False
        self._trouble = trouble

    async def work(self, document_id: str, units: Any, num_words: int) -> Summary:
        if document_id == "bad" and self._trouble is not None:
            raise self._trouble
        if document_id == "slow":
            await asyncio.sleep(600)
        return Summary(document_id)

    async def close(self) -> None:
        self.is_closed = True


BACKENDS: dict[str, Any] = {
    "ray": functools.partial(execute_documents, pool=pool(gpus=0, most=1)),
    "inline": functools.partial(execute_inline, num_in_flight=2),
}
of_both = pytest.mark.parametrize(
    "backend", [pytest.param("ray", marks=pytest.mark.slow), "inline"]
)


def through(
    backend: str, make: Any, *documents: str, should_stop: ShouldStop = lambda: None
) -> tuple[list[str], CommandError | None]:
    """The documents that came back, and the last error: the one that ended it, if any did."""
    outcomes: list[Summary | CommandError] = []
    work = work_on([DocumentWork(document, [], 1.0, 1) for document in documents])
    try:
        BACKENDS[backend](make, work=work, should_stop=should_stop, done=outcomes.append)
    except CommandError as error:
        outcomes.append(error)
    errors = [outcome for outcome in outcomes if isinstance(outcome, CommandError)]
    done = [outcome.document_id for outcome in outcomes if isinstance(outcome, Summary)]
    return done, errors[-1] if errors else None


@of_both
@pytest.mark.parametrize(
    ("trouble", "is_of_all"),
    [(AccountingError("pages do not tile the text"), False),
     (DamagedError("w/a.parquet", "is torn"), False), (StartError("no such model"), True),
     (UsageError("warehouse=w: not visible from n2"), True)],
    ids=repr,
)  # fmt: skip
def test_trouble_with_one_document(backend: str, trouble: CommandError, is_of_all: bool) -> None:
    """The others come back once; what concerns all of them ends the execution."""
    done, raised = through(backend, functools.partial(Troubled, trouble), "bad", "a", "b")
    assert (type(raised), str(raised)) == (type(trouble), str(trouble))
    assert is_of_all or sorted(done) == ["a", "b"]


class Failing(Troubled):
    """A worker whose engine dies with the document `bad` in flight, once."""

    workers: ClassVar[list["Failing"]] = []

    def __init__(self, placement: Placement) -> None:
        super().__init__(None if self.workers else EngineError("the engine is dead"), placement)
        self.workers.append(self)


def test_an_engine_that_dies_is_started_again_inline() -> None:
    Failing.workers.clear()
    done, error = through("inline", Failing, "a", "bad", "b", "c")
    assert (sorted(done), error) == (["a", "b", "bad", "c"], None)
    assert [worker.is_closed for worker in Failing.workers] == [True, True]


class DyingAtTheEnd(Failing):
    """Its engine dies when `slow` is cancelled; or, dead after `bad`, is being closed when the end
    comes, of which `close` does not tell."""

    async def work(self, document_id: str, units: Any, num_words: int) -> Summary:
        assert len(self.workers) == 1, "another is not started after the end"
        try:
            return await super().work(document_id, units, num_words)
        except asyncio.CancelledError:
            raise EngineError("the engine is dead") from None

    async def close(self) -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(2.0)


@pytest.mark.parametrize("document", ["slow", "bad"])
def test_no_engine_is_started_after_the_end_inline(document: str) -> None:
    Failing.workers.clear()
    ended = EndedError("the deadline")
    assert through("inline", DyingAtTheEnd, document, should_stop=lambda: ended) == ([], ended)
    assert len(Failing.workers) == 1


def test_a_document_that_is_cancelled_is_not_left_out_unseen() -> None:
    make = functools.partial(Troubled, asyncio.CancelledError())
    _, error = through("inline", make, "bad", "a")
    assert str(error) == "a document was cancelled; run the same command"
