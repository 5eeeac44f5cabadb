"""An engine that sends its requests to an OpenAI-compatible server in batches: a wave of requests
is a file, whose replies come as another file within a day."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Literal

from pydantic import PositiveInt
from upath import UPath

from pipeline.core.engine import Reply, Request, Seconds
from pipeline.core.settings import canonical_json
from pipeline.engines.batch_client import BatchClient
from pipeline.engines.openai import OpenAIEngine, failed_reply
from pipeline.engines.outage import FailedError
from pipeline.engines.server_settings import ServerSettings, start_errors
from pipeline.engines.vllm.control_tokens import with_breaks
from pipeline.engines.waves import Limits, Waves

_MEGABYTE = 1_000_000


class BatchSettings(ServerSettings):
    """The `engine` section of engine=batch; conf/engine/batch.yaml explains the keys.

    `deadline_seconds` are those of an upload, a look or a download: a batch itself has none.
    """

    name: Literal["batch"]
    wave_seconds: Seconds  # without a new request, after which a wave is sent
    look_seconds: Seconds  # between two looks at a batch
    max_requests: PositiveInt  # of a wave
    max_megabytes: PositiveInt  # of a wave's file

    async def start(self) -> "BatchEngine":
        """Connect to the server: list its models. Raises StartError as engine=openai does, but
        requests no reply, which would not be part of a batch."""
        client = BatchClient(self.base_url, self.api_key_env, self.retries)
        with start_errors(client):
            return BatchEngine(self, client, await self.usable_context(client))

    @property
    def limits(self) -> Limits:
        """When a wave is sent."""
        size = self.max_megabytes * _MEGABYTE
        return Limits(self.wave_seconds, self.look_seconds, self.max_requests, size)


class BatchEngine(OpenAIEngine):
    """Sends the requests to one server in waves. Tokens are estimated, as hosted servers do not
    count them."""

    def __init__(self, settings: BatchSettings, client: BatchClient, context_tokens: int) -> None:
        super().__init__(settings, client, context_tokens)
        self._waves = Waves(client, self._when_up, settings.limits)
        self._tries = 1 + settings.retries

    async def generate(self, request: Request) -> Reply:
        """The reply to one request, hours later; `seconds` are those since it came.

        A failure by the server's fault, or none of its own, goes into the next wave, up to
        `retries` times, and so does what an expired batch has left; then, or if the request is at
        fault, a Reply with finish_reason abort and the server's message. Problems as engine=openai
        sets them. Raises OutageError if the server stays unreachable, or refuses the key or a whole
        batch.
        """
        started = time.perf_counter()
        shown = {"model": self._settings.model, "messages": with_breaks(request.messages)}
        body = canonical_json({**shown, **self._settings.body(request)})
        for _ in range(self._tries):
            try:
                reply = self._unless_cut(request.messages, await self._waves.reply(body))
                break
            except FailedError as error:
                reply = failed_reply(error)
                if error.blame == "request":
                    break
        return replace(reply, seconds=time.perf_counter() - started)

    async def resume(self, folder: UPath) -> None:
        """Note batches in `folder`, and take up those that are noted there."""
        await self._waves.resume(folder)

    def waiting_for(self) -> str:
        """The batches, or the server, that requests wait for; "" if they do not wait."""
        return super().waiting_for() or self._waves.waiting_for()

    async def close(self) -> None:
        await self._waves.close()
        await super().close()

    async def _when_up(self, send: Callable[[], Awaitable[Any]]) -> Any:
        return await self.outage.send_when_up(lambda: self._in_time(send()))

    async def _probe(self) -> None:
        """List the models; any list is a success."""
        await self._in_time(self._client.models())
