"""A server that goes away, or replies badly to its next requests. What it replies else follows from
the request alone: a row made from another's call would be noticed."""

import asyncio
import hashlib
import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from pipeline.core.prompts import Message
from tests.support.engines.loopback_server import CHECK, Answer, LoopbackServer, completion

_VERDICTS = {
    "YES or NO": ("YES", "NO"),
    "one of three verdicts": ("Yes", "Yes, partially", "No"),
}
_RESPONSES: dict[str, dict[str, Any]] = {
    "away": {"status": 503, "text": "overloaded"},
    "garbage": {"text": "<html>\x00 not JSON", "content_type": "application/json"},
    "empty": {"body": b"", "content_type": "application/json"},
}


def sha(*parts: Any) -> str:
    """16 hex digits of what JSON makes of the parts."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def reply(messages: Sequence[Message]) -> str:
    """A legal reply to any prompt of the family `generic` that these runs use."""
    text, drawn = messages[-1]["content"], sha(messages)
    for asked, verdicts in _VERDICTS.items():
        if asked in text:
            return verdicts[int(drawn, 16) % len(verdicts)]
    if "I want to look up Page" in text:
        return f"I want to look up Page [{int(drawn, 16) % 3}] to see"
    return f"said in reply {drawn}"


@dataclass(kw_only=True)
class Server(LoopbackServer):
    """`bad` is what becomes of the next requests: away, garbage, empty; hang: no answer; huge:
    three million characters; of_another: the reply to the request before; drip: a byte a minute;
    cut: half of the bytes that the header promises, then the connection is gone."""

    bad: list[str] = field(default_factory=list)
    model: Any = field(default_factory=lambda: {"id": "m", "max_model_len": 32_000})
    counts: int | None = None

    def __post_init__(self) -> None:
        self.answer = lambda body: Answer(text=reply(body["messages"]), seconds=0.01)

    def away(self, seconds: float) -> None:
        """Cut all connections, and listen again after so long."""
        self.__exit__()
        time.sleep(seconds)
        self.__enter__()

    def calls(self) -> Counter[str]:
        """How often each request arrived."""
        bodies = [asked.body for asked in self.asked]
        return Counter(sha(b["messages"], b["max_tokens"], b.get("seed")) for b in bodies)

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        is_check = body["messages"][0]["content"] == CHECK
        before = self.asked[-1].body if self.asked else body
        response = await super()._chat(request)
        if is_check or not self.bad:
            return response
        mode = self.bad.pop(0)
        if mode in _RESPONSES:
            return web.Response(**_RESPONSES[mode])
        if mode == "hang":
            await asyncio.sleep(3600)
        texts = {"huge": "x [" * 1_000_000, "of_another": reply(before["messages"])}
        whole = json.dumps(completion(body, Answer(text=texts.get(mode, "drip " * 700)))).encode()
        if mode in texts:
            return web.Response(body=whole, content_type="application/json")
        torn = web.StreamResponse(headers={"Content-Length": str(len(whole))})
        await torn.prepare(request)
        for byte in whole if mode == "drip" else ():
            await torn.write(bytes([byte]))
            await asyncio.sleep(60)
        await torn.write(whole[: len(whole) // 2])
        assert request.transport is not None
        request.transport.abort()
        return torn
