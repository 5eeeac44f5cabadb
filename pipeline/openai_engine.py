"""Any OpenAI-compatible server as an engine. It is somebody else's: neither started nor ended here.

The key is in the environment; settings hold the variable's name and nothing else does either.
"""

import asyncio
import math
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from pydantic import Field, NonNegativeInt, field_validator

from pipeline.engine import EngineSettings, Reply, Request
from pipeline.errors import EngineError, StartError, UsageError
from pipeline.openai_server import OpenAIServer, RefusedError
from pipeline.prompts import Constraint, Message
from pipeline.settings import sha

_BYTES_PER_TOKEN = 3  # English has more than 4: the estimate errs on the high side
_TEMPLATE_TOKENS = 16  # around a message, in an estimate
_COUNTS_KEPT = 100_000
_MODELS_SHOWN = 5
_OURS = {
    "model",
    "messages",
    "max_tokens",
    "temperature",
    "seed",
    "structured_outputs",
    "stream",
    "n",
}


class OpenAISettings(EngineSettings):
    """`args` are more of every request's body; `sequences` limit the requests in flight."""

    name: Literal["openai"]
    base_url: str
    model: str = Field(min_length=1)
    api_key_env: str | None
    args: dict[str, Any]
    retries: NonNegativeInt
    thinking_tokens: NonNegativeInt
    structured_outputs: Literal["vllm", "none"]

    @field_validator("base_url")
    @classmethod
    def _is_address(cls, url: str) -> str:
        if re.search("[@?#]", url):  # not shown: what stands there may be a secret
            raise UsageError(
                "engine.base_url (or rater.base_url) has an @, ? or #; write http://HOST:PORT/v1, "
                "a key or password belongs into the variable that api_key_env names"
            )
        if not re.match("https?://[^/]", url):
            raise ValueError("no address; write http://HOST:PORT/v1")
        return url.rstrip("/")

    @field_validator("api_key_env")
    @classmethod
    def _is_variable(cls, name: str | None) -> str | None:
        if name is not None and not re.fullmatch("[A-Z_][A-Z0-9_]*", name):  # perhaps the key
            raise UsageError(
                "engine.api_key_env (or rater.api_key_env) is no name of an environment variable "
                "(A-Z, 0-9, _); put the key into one and name that"
            )
        return name

    @field_validator("args")
    @classmethod
    def _has_none_of_ours(cls, args: dict[str, Any]) -> dict[str, Any]:
        if taken := sorted(_OURS & args.keys()):
            raise ValueError(f"{taken[0]} is not for args to set; remove it")
        return args

    @property
    def takes_constraints(self) -> bool:
        return self.structured_outputs != "none"

    @property
    def title(self) -> str:
        return f"openai:{self.model}"

    def own_identity(self) -> Mapping[str, Any]:
        return {"model": self.model, "args": self.args, "thinking_tokens": self.thinking_tokens}

    async def start(self) -> "OpenAIEngine":
        """Asks for the server's models and for one short reply.

        Raises StartError where no server answers or refuses either, where it has not the model or
        does not heed constraints, and where its context is too small or not known.
        """
        server = OpenAIServer(self.base_url, self.api_key_env, self.retries)
        try:
            engine = OpenAIEngine(self, server, self._context(server, await server.models()))
            await engine.try_out()
        except RefusedError as refusal:
            told = server.key_refused if refusal.status == 403 else f"{server.address}: {refusal}"
            raise StartError(told) from None
        except EngineError as error:
            raise StartError(str(error)) from None
        return engine

    def _context(self, server: OpenAIServer, models: Mapping[str, int | None] | None) -> int:
        """The tokens that prompt and answer share: the setting or what the server lists, without
        those of thinking."""
        if models is None:
            raise StartError(f"{server.address}: lists no models; does the address end in /v1?")
        if self.model not in models:
            names = [*list(models)[:_MODELS_SHOWN], *["..."] * (len(models) > _MODELS_SHOWN)]
            told = f"the server has {', '.join(names) or 'none'}"
            raise StartError(f"engine.model={self.model}: {told}")
        served = models[self.model]
        total = self.context_tokens or served
        if total is None:
            told = "the server does not tell its context; set engine.context_tokens"
            raise StartError(f"{server.address}: {told}")
        if served and total > served:
            told = f"the server has a context of {served}; lower it"
            raise StartError(f"engine.context_tokens={total}: {told}")
        if total <= self.thinking_tokens:
            told = f"leaves no room in a context of {total}; lower it"
            raise StartError(f"engine.thinking_tokens={self.thinking_tokens}: {told}")
        return total - self.thinking_tokens


class OpenAIEngine:
    """What the server calls reasoning is the Reply's `thinking`.

    It has `thinking_tokens` on top of the reply's own; what it does not use of them is left to the
    answer, since a server counts one sum.
    """

    def __init__(self, settings: OpenAISettings, server: OpenAIServer, context_tokens: int) -> None:
        self.name = settings.title
        self.context_tokens = context_tokens
        self._settings = settings
        self._server = server
        self._replying = asyncio.Semaphore(settings.sequences)
        self._counting = asyncio.Semaphore(settings.sequences)
        self._counts: dict[str, int] = {}
        self._counts_exactly = False

    async def generate(self, request: Request) -> Reply:
        """finish_reason abort where the server refuses the request, for good or after `retries`;
        its problem is context_overflow where that is the server's reason."""
        async with self._replying:
            started = time.perf_counter()
            try:
                reply = await self._complete(request)
            except RefusedError as refusal:
                reply = Reply(text="", finish_reason="abort", problem=refusal.problem)
            return replace(reply, seconds=time.perf_counter() - started)

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        """By the server's /tokenize where it counts as its replies do, as vLLM's does.

        Elsewhere an estimate from UTF-8 bytes that errs on the high side for prose; where it is
        too low all the same, the server refuses the request (context_overflow).
        """
        if not self._counts_exactly:
            return _estimate(messages)
        key = sha(list(messages), 32)
        if key not in self._counts:
            async with self._counting:
                count = await self._count(messages)
            if len(self._counts) >= _COUNTS_KEPT:
                self._counts.pop(next(iter(self._counts)))
            self._counts[key] = _estimate(messages) if count is None else count
        return self._counts[key]

    async def try_out(self) -> None:
        """Find out whether the server counts exactly. Raises RefusedError where it does not take a
        request like ours, StartError where it does not heed its constraint."""
        takes_constraints = self._settings.takes_constraints
        request = Request(
            prompt="try_out",
            fields=None,
            messages=({"role": "user", "content": "Say: ready"},),
            max_reply_tokens=16,
            constraint=Constraint(choices=("ready",)) if takes_constraints else None,
            temperature=self._settings.temperature,
        )
        reply = await self._complete(request)
        if takes_constraints and reply.finish_reason == "stop" and reply.text != "ready":
            key = f"engine.structured_outputs={self._settings.structured_outputs}"
            raise StartError(f"{key}: the server does not heed them; set it to none")
        self._counts_exactly = await self._count(request.messages) == reply.prompt_tokens

    async def _complete(self, request: Request) -> Reply:
        body = {
            "max_tokens": request.max_reply_tokens + self._settings.thinking_tokens,
            "temperature": request.temperature,
            **({"seed": request.seed} if request.temperature > 0 else {}),
            **_constrained(request.constraint),
            **self._settings.args,
        }
        return await self._server.complete(self._settings.model, request.messages, body)

    async def _count(self, messages: Sequence[Message]) -> int | None:
        model, args = self._settings.model, self._settings.args
        return await self._server.count_tokens(model, messages, args)


def _constrained(constraint: Constraint | None) -> dict[str, Any]:
    """As vLLM's server takes it."""
    if constraint is None:
        return {}
    if constraint.choices:
        return {"structured_outputs": {"choice": list(constraint.choices)}}
    return {"structured_outputs": {"regex": constraint.regex}}


def _estimate(messages: Sequence[Message]) -> int:
    sizes = [len(message["content"].encode()) for message in messages]
    return sum(math.ceil(size / _BYTES_PER_TOKEN) + _TEMPLATE_TOKENS for size in sizes)
