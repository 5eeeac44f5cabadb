"""An OpenAI-compatible server in a process of its own: `python -m tests.chaos.server PORT FOLDER`.

It replies as tests/chaos/replies.py says, appends the hash of every request to FOLDER/asked, and is
told over /mode how many of the next requests to treat badly, and how.
"""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.chaos.replies import reply, sha
from tests.support.engines.loopback_server import CHECK, Answer, completion

_SECONDS = 0.01  # of a reply
_HUGE = 3_000_000  # characters
_RESPONSES: dict[str, dict[str, Any]] = {  # to requests that are treated badly, by mode
    "away": {"status": 503, "text": "overloaded"},
    "garbage": {"text": "<html>\x00 not JSON", "content_type": "application/json"},
    "empty": {"body": b"", "content_type": "application/json"},
}


class Server:
    """The mode of the next requests and their number."""

    def __init__(self, folder: Path) -> None:
        self._log = os.open(folder / "asked", os.O_APPEND | os.O_CREAT | os.O_WRONLY)
        self._mode, self._left = "", 0
        self._last: Any = None  # the messages of the request before

    def application(self) -> web.Application:
        app = web.Application(client_max_size=2**26)
        app.router.add_get("/v1/models", self._models)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post("/mode", self._set)
        return app

    async def _set(self, request: web.Request) -> web.Response:
        wanted = await request.json()
        self._mode, self._left = wanted["mode"], wanted["number"]
        return web.Response()

    async def _models(self, request: web.Request) -> web.Response:
        listed = [{"id": "m", "max_model_len": 32_000}]
        return web.json_response({"object": "list", "data": listed})

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        if body["messages"][0]["content"] == CHECK:
            return web.json_response(completion(body, Answer(text="ready")))
        line = sha(body["messages"], body["max_tokens"], body.get("seed"))
        os.write(self._log, f"{line}\n".encode())
        before, self._last = self._last, body["messages"]
        if self._left > 0:
            self._left -= 1
            return await _badly(self._mode, request, body, before)
        await asyncio.sleep(_SECONDS)
        return web.json_response(completion(body, Answer(text=reply(body["messages"]))))


async def _badly(mode: str, request: web.Request, body: Any, before: Any) -> web.StreamResponse:
    """hang: no answer; huge: three million characters; of_another: the reply to the request before;
    drip: a byte a minute of a response that would be right in days; cut: half of the bytes that the
    header promises, then the connection is gone."""
    if mode in _RESPONSES:
        return web.Response(**_RESPONSES[mode])
    if mode == "hang":
        await asyncio.sleep(3600)
    texts = {"huge": "x [" * (_HUGE // 3), "drip": "drip " * 700}
    text = texts.get(mode) or reply(before if mode == "of_another" else body["messages"])
    whole = json.dumps(completion(body, Answer(text=text))).encode()
    if mode in ("huge", "of_another"):
        return web.Response(body=whole, content_type="application/json")
    response = web.StreamResponse(headers={"Content-Length": str(len(whole))})
    await response.prepare(request)
    for byte in whole if mode == "drip" else ():
        await response.write(bytes([byte]))
        await asyncio.sleep(60)
    await response.write(whole[: len(whole) // 2])
    assert request.transport is not None
    request.transport.abort()
    return response


if __name__ == "__main__":
    port, folder = int(sys.argv[1]), Path(sys.argv[2])
    web.run_app(
        Server(folder).application(), host="127.0.0.1", port=port, print=None, access_log=None
    )
