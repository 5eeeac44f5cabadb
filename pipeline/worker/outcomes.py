"""Outcomes of documents: a summary or an error, as texts that travel between processes; the
interface of a worker, and how many documents it has in flight."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Protocol

from pipeline.core.errors import (
    AccountingError,
    OutageError,
    StartError,
    StorageError,
    UsageError,
)
from pipeline.core.unit_progress import UsageCounters
from pipeline.work.units import Unit
from pipeline.worker.executor import Summary
from pipeline.worker.in_flight import Placement
from pipeline.worker.watching import Failures

# Documents in flight of a worker beyond its request slots: some of them are between requests.
DOCUMENTS_OVER_SLOTS = 4


class AnyWorker(Protocol):
    """The interface of `pipeline.worker.worker.Worker` that executions use."""

    usage: UsageCounters

    async def work(self, document_id: str, units: Sequence[Unit]) -> Summary: ...

    async def close(self) -> None: ...


MakeWorker = Callable[[Placement], AnyWorker]
"""Makes a worker; called where the worker is to work."""

# Ray preserves only the text of an exception, so these return as rows; the driver raises them.
_ERRORS: dict[str, type[Exception]] = {
    error.__name__: error
    for error in (AccountingError, OutageError, StartError, StorageError, UsageError)
}


class Outcomes:
    """The outcomes of one worker's documents. After a StorageError no document is begun: its
    replies could not be kept."""

    def __init__(self, worker: AnyWorker) -> None:
        self._worker = worker
        self._refused: StorageError | None = None

    async def outcome(self, document_id: str, units: Sequence[Unit]) -> dict[str, str]:
        """Work on the document. Returns `error`, the name of an error class or "", and `payload`,
        the error's message or the Summary as JSON. Raises EngineError: the worker has to be made
        anew, and the document executed again."""
        try:
            if self._refused:
                raise self._refused
            summary = await self._worker.work(document_id, units)
        except tuple(_ERRORS.values()) as error:
            if isinstance(error, StorageError):
                self._refused = error
            return {"error": type(error).__name__, "payload": str(error)}
        return {"error": "", "payload": json.dumps(asdict(summary))}


def take(row: Mapping[str, str], finished: Callable[[Summary], None], failures: Failures) -> None:
    """Handle an outcome in the driver. Raises the errors that end a run at once."""
    if not row["error"]:
        finished(Summary(**json.loads(row["payload"])))
        return
    error = _ERRORS[row["error"]](row["payload"])
    if not isinstance(error, (AccountingError, StorageError)):
        raise error
    failures.add(error)
