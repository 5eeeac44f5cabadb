"""A small OpenAI-compatible server on 127.0.0.1, in a thread; its tokens are words. It records
requests, and can refuse, delay, drop a connection and go away."""

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web

CHECK = "Say: ready"  # the request of OpenAIEngine.check_server
TEMPLATE_TOKENS = 3  # of a whole chat, beside its words


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The response to one chat: a completion, or `body` with `status` unchanged."""

    text: str = "a short reply"
    finish_reason: Any = "stop"
    prompt_tokens: int | None = None  # that it says it has read; None: the words and the template
    reply_tokens: int | None = None  # None: the words
    message: Mapping[str, Any] = field(default_factory=dict)  # more of the message
    model: str | None = None  # that it says it is; None: what was asked for
    status: int = 200
    body: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"  # of a `body`
    seconds: float = 0.0
    hang_up: bool = False
    vanish: bool = False  # the whole server, from now on


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One chat request as received."""

    body: dict[str, Any]
    headers: Mapping[str, str]
    at: float


@dataclass(kw_only=True)
class LoopbackServer:
    """`key` is the API key it requires, `ready` its reply to the first request; `counts`: what
    /tokenize adds for the template; null: no /tokenize."""

    answer: Callable[[dict[str, Any]], Answer] = lambda body: Answer()
    ready: Answer = field(default_factory=lambda: Answer(text="ready"))
    model: Any = field(default_factory=lambda: {"id": "m", "max_model_len": 2000})
    key: str | None = None
    counts: int | None = TEMPLATE_TOKENS
    models_status: int = 200  # of the list of models
    port: int = 0
    asked: list[Asked] = field(default_factory=list)
    num_counted: int = 0
    is_busy_counting: bool = False  # /tokenize answers 503
    most_at_once: int = 0
    _at_once: int = 0
    _is_gone: bool = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)
        return self

    def __exit__(self, *raised: object) -> None:
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _start(self) -> None:
        app = web.Application(middlewares=[self._guard], client_max_size=2**26)
        app.router.add_get("/v1/models", self._models)
        app.router.add_post("/v1/chat/completions", self._chat)
        if self.counts is not None:
            app.router.add_post("/tokenize", self._tokenize)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        self._site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await self._site.start()
        self.port = self._runner.addresses[0][1]

    @web.middleware
    async def _guard(self, request: web.Request, handler: Any) -> web.StreamResponse:
        if self._is_gone:
            _hang_up(request)
        if self.key and request.headers.get("Authorization") != f"Bearer {self.key}":
            told = f"wrong: {request.headers.get('Authorization')}"
            return web.json_response({"error": {"message": told}}, status=401)
        response: web.StreamResponse = await handler(request)
        return response

    async def _models(self, request: web.Request) -> web.Response:
        listed = {"object": "list", "data": [self.model]} if self.models_status == 200 else {}
        return web.json_response(listed, status=self.models_status)

    async def _tokenize(self, request: web.Request) -> web.Response:
        self.num_counted += 1
        if self.is_busy_counting:
            return web.json_response({}, status=503)
        count = _num_words(await request.json()) + (self.counts or 0)
        return web.json_response({"count": count})

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        is_check = body["messages"][0]["content"] == CHECK
        if not is_check:
            self.asked.append(Asked(body=body, headers=dict(request.headers), at=time.monotonic()))
        answer = self.ready if is_check else self.answer(body)
        await self._take(answer.seconds)
        if answer.vanish:
            self._is_gone = True
            await self._site.stop()
        if answer.vanish or answer.hang_up:
            _hang_up(request)
        if answer.body is None:
            return web.json_response(completion(body, answer), status=answer.status)
        how: dict[str, Any] = {"headers": answer.headers, "content_type": answer.content_type}
        return web.Response(text=answer.body, status=answer.status, **how)

    async def _take(self, seconds: float) -> None:
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            await asyncio.sleep(seconds)
        finally:
            self._at_once -= 1


def _hang_up(request: web.Request) -> None:
    assert request.transport is not None
    request.transport.abort()
    raise asyncio.CancelledError


def _num_words(body: Mapping[str, Any]) -> int:
    return sum(len(message["content"].split()) for message in body["messages"])


def completion(body: Mapping[str, Any], answer: Answer) -> dict[str, Any]:
    """In vLLM's format; reports one cached prompt token."""
    words = _num_words(body) + TEMPLATE_TOKENS
    prompt = words if answer.prompt_tokens is None else answer.prompt_tokens
    reply = len(answer.text.split()) if answer.reply_tokens is None else answer.reply_tokens
    message = {"role": "assistant", "content": answer.text, **answer.message}
    cached = {"cached_tokens": 1}
    return {
        "model": answer.model or body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": answer.finish_reason}],
        "usage": {
            "prompt_tokens": prompt, "completion_tokens": reply, "prompt_tokens_details": cached,
        },
    }  # fmt: skip
