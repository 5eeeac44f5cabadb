"""Files and batches of an OpenAI-compatible server: /v1/files and /v1/batches."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pipeline.core.engine import Reply
from pipeline.engines.openai_client import OpenAIClient, server_words
from pipeline.engines.outage import FailedError

URL: Literal["/v1/chat/completions"] = "/v1/chat/completions"
_WINDOW: Literal["24h"] = "24h"  # the one that every provider has
_OK = 200
_LISTED = 100
ENDED = ("completed", "failed", "expired", "cancelled")
_UNANSWERED = ("batch_expired", "batch_cancelled")  # codes of lines that were not processed


@dataclass(frozen=True)
class Batch:
    """A batch as the server describes it. `files`: those with its replies and errors, once it has
    ended; `why`: the server's words about one that it refuses as a whole."""

    batch_id: str
    status: str
    num_done: int  # lines
    files: tuple[str, ...]
    why: str


class UnlistedError(FailedError):
    """The server lists no batches, so that nobody can say whether it has one."""


class BatchClient(OpenAIClient):
    """Requests about batches; they raise FailedError as those of OpenAIClient do."""

    _files_sent: frozenset[str] = frozenset()  # for which a batch was requested

    async def upload(self, lines: bytes) -> str:
        """Upload a file of requests, a JSON line each; returns the file's id."""
        with self._errors():
            made = await self._client.files.create(file=("wave.jsonl", lines), purpose="batch")
        return _id_of(made)

    async def create(self, file_id: str) -> Batch:
        """The batch of a file. It is looked for if an earlier request, which was cut off, may have
        created it. Raises as `find`."""
        if file_id in self._files_sent and (found := await self.find(file_id)):
            return found
        self._files_sent |= {file_id}
        with self._errors():
            made = await self._client.batches.create(
                input_file_id=file_id, endpoint=URL, completion_window=_WINDOW
            )
        return _batch(made)

    async def find(self, file_id: str) -> Batch | None:
        """The batch of a file, among the newest; None if there is none. Raises UnlistedError if the
        server lists no batches."""
        try:
            with self._errors():
                page = await self._client.batches.list(limit=_LISTED)
        except FailedError as error:
            if error.blame != "request" or error.problem == "timeout":
                raise
            raise UnlistedError(str(error), "request") from None
        listed: Any = getattr(page, "data", None)
        of_file = (one for one in listed or () if getattr(one, "input_file_id", None) == file_id)
        return next(map(_batch, of_file), None)

    async def look(self, batch_id: str) -> Batch:
        """The batch as it is now."""
        with self._errors():
            return _batch(await self._client.batches.retrieve(batch_id))

    async def answers(self, batch: Batch) -> dict[str, Reply | FailedError]:
        """The replies and failures of a batch that has ended, by the `custom_id` of their lines;
        lines that it did not get to are left out."""
        found: dict[str, Reply | FailedError] = {}
        for file in batch.files:
            with self._errors():
                content = (await self._client.files.content(file)).content
            for line in _objects(content):
                answer = self._answer(line)
                if answer is not None:
                    found[str(line.get("custom_id"))] = answer
        return found

    def _answer(self, line: Mapping[str, Any]) -> Reply | FailedError | None:
        """The reply or failure in a line of a file."""
        response, error = line.get("response"), line.get("error")
        if not isinstance(response, dict):
            told = error if isinstance(error, dict) else {}
            if told.get("code") in _UNANSWERED:
                return None
            return FailedError(f"{told.get('code')}: {server_words(error)}", "either")
        status, body = response.get("status_code"), response.get("body")
        if isinstance(status, int) and status != _OK:
            inner = body.get("error", body) if isinstance(body, dict) else body
            return self._refused(status, inner, {})
        try:
            return self._reply_in(body)
        except FailedError as failure:
            return failure


def _objects(content: bytes) -> Iterator[dict[str, Any]]:
    """The JSON objects of a file's lines. Lines that hold none are left out: their requests count
    as unanswered."""
    for line in content.split(b"\n"):
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            yield found


def _id_of(made: Any) -> str:
    found = getattr(made, "id", None)
    if not isinstance(found, str) or not found:
        raise FailedError("the response has no id", "either")
    return found


def _batch(made: Any) -> Batch:
    """The batch in a response, nothing of which has been validated."""
    status = getattr(made, "status", None)
    if not isinstance(status, str):
        raise FailedError("the response is no batch", "either")
    counts = getattr(made, "request_counts", None)
    done = [getattr(counts, name, None) for name in ("completed", "failed")]
    files = [getattr(made, f"{name}_file_id", None) for name in ("output", "error")]
    errors = getattr(getattr(made, "errors", None), "data", None)
    told = [str(getattr(one, "message", one)) for one in errors or [] if one]
    return Batch(
        _id_of(made),
        status,
        sum(number for number in done if isinstance(number, int)),
        tuple(file for file in files if isinstance(file, str)),
        " ".join(told[0].split())[:300] if told else "",
    )
