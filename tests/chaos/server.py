"""An OpenAI-compatible server in a process of its own: `python -m tests.chaos.server PORT FOLDER`.

It replies as tests/chaos/replies.py says, appends the hash of every request to FOLDER/asked, and is
told over /mode how many of the next requests to treat badly, and how.
"""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.chaos.replies import reply, sha
from tests.support.engines.loopback_server import CHECK

SECONDS = 0.01  # of a reply
_HUGE = 3_000_000  # characters
_SEEN: list[Any] = []  # the messages of each request


class Server:
    """`seconds` of each reply; the mode of the next requests and their number."""

    def __init__(self, folder: Path) -> None:
        self._log = os.open(folder / "asked", os.O_APPEND | os.O_CREAT | os.O_WRONLY)
        self._mode, self._left = "", 0

    def application(self) -> web.Application:
        made = web.Application(client_max_size=2**26)
        made.router.add_get("/v1/models", self._models)
        made.router.add_post("/v1/chat/completions", self._chat)
        made.router.add_post("/mode", self._set)
        return made

    async def _set(self, request: web.Request) -> web.Response:
        asked = await request.json()
        self._mode, self._left = asked["mode"], asked["number"]
        return web.Response()

    async def _models(self, request: web.Request) -> web.Response:
        listed = [{"id": "m", "max_model_len": 32_000}]
        return web.json_response({"object": "list", "data": listed})

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        if body["messages"][0]["content"] == CHECK:
            return web.json_response(_completion("ready", body))
        line = sha(body["messages"], body["max_tokens"], body.get("seed"))
        os.write(self._log, f"{line}\n".encode())
        _SEEN.append(body["messages"])
        if self._left > 0:
            self._left -= 1
            return await _MODES[self._mode](request, body)
        await asyncio.sleep(SECONDS)
        return web.json_response(_completion(reply(body["messages"]), body))


def _completion(content: Any, body: dict[str, Any]) -> dict[str, Any]:
    words = sum(len(message["content"].split()) for message in body["messages"])
    message = {"role": "assistant", "content": content}
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": words, "completion_tokens": 3, "total_tokens": words + 3},
    }


async def _away(request: web.Request, body: Any) -> web.StreamResponse:
    return web.Response(status=503, text="overloaded")


async def _hang(request: web.Request, body: Any) -> web.StreamResponse:
    await asyncio.sleep(3600)
    return web.Response()


async def _drip(request: web.Request, body: Any) -> web.StreamResponse:
    """A byte a minute of a response that would be right in days."""
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    for byte in json.dumps(_completion("drip " * 700, body)).encode():
        await response.write(bytes([byte]))
        await asyncio.sleep(60)
    return response


async def _garbage(request: web.Request, body: Any) -> web.StreamResponse:
    return web.Response(text="<html>\x00 not JSON", content_type="application/json")


async def _empty(request: web.Request, body: Any) -> web.StreamResponse:
    return web.Response(body=b"", content_type="application/json")


async def _huge(request: web.Request, body: Any) -> web.StreamResponse:
    return web.json_response(_completion("x [" * (_HUGE // 3), body))


async def _cut(request: web.Request, body: Any) -> web.StreamResponse:
    """Half of the bytes that the header promises; then the connection is gone."""
    whole = json.dumps(_completion(reply(body["messages"]), body)).encode()
    response = web.StreamResponse(headers={"Content-Length": str(len(whole))})
    await response.prepare(request)
    await response.write(whole[: len(whole) // 2])
    assert request.transport is not None
    request.transport.abort()
    return response


async def _of_another(request: web.Request, body: Any) -> web.StreamResponse:
    """What the request before this one is replied."""
    return web.json_response(_completion(reply(_SEEN[-2]), body))


_MODES: dict[str, Callable[[web.Request, Any], Awaitable[web.StreamResponse]]] = {
    "away": _away, "hang": _hang, "drip": _drip, "garbage": _garbage, "empty": _empty,
    "huge": _huge, "cut": _cut, "of_another": _of_another,
}  # fmt: skip

if __name__ == "__main__":
    port, folder = int(sys.argv[1]), Path(sys.argv[2])
    web.run_app(
        Server(folder).application(), host="127.0.0.1", port=port, print=None, access_log=None
    )
