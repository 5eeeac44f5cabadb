"""Ray Data around workers: summaries come back, trouble comes back as ours, nothing is endless."""

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import ray

from pipeline.cluster import run_phase
from pipeline.errors import AccountingError, EngineError
from pipeline.settings import ClusterSettings
from pipeline.worker import Summary

CLUSTER = ClusterSettings(workers=1, cpus_per_worker=1, documents_per_worker=2)


@pytest.fixture(autouse=True, scope="module")
def ray_of_our_own() -> Iterator[None]:
    yield
    ray.shutdown()  # the one that this process started, and no other


def worker(trouble: Callable[[], None]) -> Any:
    """Makes workers for which the document `bad` is trouble."""

    class Worker:
        async def work(self, document_id: str, units: Any) -> Summary:
            if document_id == "bad":
                trouble()
            return Summary(document_id)

    return Worker


def through(make: Any, *documents: str) -> tuple[list[str], Exception | None]:
    """The documents that came back, and what was raised at the end."""
    done: list[str] = []
    try:
        for summary in run_phase(make, [(document, []) for document in documents], CLUSTER):
            done.append(summary.document_id)
    except (AccountingError, EngineError) as error:
        return done, error
    return done, None


def test_every_document_comes_back_once() -> None:
    done, error = through(worker(lambda: None), "a", "b", "c", "bad")
    assert (sorted(done), error) == (["a", "b", "bad", "c"], None)


def test_trouble_with_one_document_costs_no_other() -> None:
    def trouble() -> None:
        raise AccountingError("pages do not tile the text")

    done, error = through(worker(trouble), "bad", "a", "b", "c")
    assert sorted(done) == ["a", "b", "c"]
    assert isinstance(error, AccountingError)
    assert str(error) == "pages do not tile the text"


def test_a_document_that_kills_its_worker_does_not_run_for_ever() -> None:
    _, error = through(worker(lambda: os._exit(1)), "a", "bad", "b")
    assert isinstance(error, EngineError)
    assert "died several times" in str(error)
