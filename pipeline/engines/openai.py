"""An engine that sends its requests to a running OpenAI-compatible server. Its settings, which are
stored with the run, hold only the name of the variable with the API key."""

import asyncio
import re
import time
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import Field, NonNegativeFloat, NonNegativeInt, ValidationInfo, field_validator

from pipeline.core.engine import EngineSettings, Reply, Request
from pipeline.core.errors import StartError, UsageError, redacted
from pipeline.core.prompts import Constraint, Message
from pipeline.core.registry import hint
from pipeline.core.settings import sha
from pipeline.engines.openai_client import FailedError, Gate, OpenAIClient

T = TypeVar("T")
_BYTES_PER_TOKEN = 3  # English has more than 4: the estimate errs on the high side
_TEMPLATE_TOKENS = 16  # estimated per message, for the chat template around it
_CACHED_COUNTS = 100_000  # methods count the same pages and gists
# Scripts without spaces between words, Thai to Myanmar, Khmer, kana and Han: at most 4 a token.
_UNSPACED = re.compile("[\u0e00-\u109f\u1780-\u17ff\u3040-\u9fff\U00020000-\U0003ffff]+")
_LEAST_READ = 0.75  # the least share of `least_tokens`: some tokenizers join several words
# Patterns of keys whose value may hold a secret, and what to write. Messages show no such value.
_FORMS = {
    "base_url": ("https?://[^/@?#]+(/[^@?#]*)?", "http://HOST:PORT/v1"),
    "api_key_env": ("[A-Z_][A-Z0-9_]*", "the name of an environment variable (A-Z, 0-9, _)"),
}
_SET_BY_ENGINE = {
    "api_key", "model", "messages", "max_tokens", "max_completion_tokens", "temperature", "seed",
    "structured_outputs", "stream", "n",
}  # fmt: skip


class OpenAISettings(EngineSettings):
    """The `engine` section of engine=openai; conf/engine/openai.yaml explains the keys."""

    name: Literal["openai"]
    base_url: str
    model: str = Field(min_length=1)
    api_key_env: str | None
    args: dict[str, Any]
    retries: NonNegativeInt
    outage_minutes: NonNegativeFloat
    thinking_tokens: NonNegativeInt
    max_tokens_key: Literal["max_tokens", "max_completion_tokens"]
    structured_outputs: Literal["vllm", "none"]

    keeps_deadline: ClassVar[bool] = True

    @field_validator("base_url", "api_key_env")
    @classmethod
    def _has_its_form(cls, value: str | None, info: ValidationInfo) -> str | None:
        key = str(info.field_name)
        pattern, form = _FORMS[key]
        if value is not None and not re.fullmatch(pattern, value):
            place = f"engine.{key} (or rater.{key})"
            raise UsageError(f"{place} must be {form}; a key belongs in the environment")
        return value and value.rstrip("/")

    @field_validator("args")
    @classmethod
    def _sets_only_free_keys(cls, args: dict[str, Any]) -> dict[str, Any]:
        if taken := sorted(_SET_BY_ENGINE & args.keys()):
            raise UsageError(f"engine.args.{taken[0]} is set by the engine itself; remove it")
        return args

    @property
    def takes_constraints(self) -> bool:
        return self.structured_outputs != "none"

    @property
    def title(self) -> str:
        return f"{self.name}:{self.model}"

    def own_identity(self) -> Mapping[str, Any]:
        return {"model": self.model, "args": self.args, "thinking_tokens": self.thinking_tokens}

    async def start(self) -> "OpenAIEngine":
        """List the server's models, then request a short reply. Raises StartError if the server
        refuses one of the two, does not serve the model or ignores constraints, and if its context
        is too small or unknown."""
        client = OpenAIClient(self.base_url, self.model, self.api_key_env, self.retries)
        try:
            try:
                models = await client.models()
            except FailedError as error:
                if self.context_tokens is None or error.is_key or error.problem != "refused":
                    raise
                models = None  # the server lists none; it is assumed to have `context_tokens`
            engine = OpenAIEngine(self, client, self._usable_context(client.address, models))
            await engine.check_server()
        except FailedError as error:
            raise StartError(f"{client.address}: {error}") from None
        return engine

    def _usable_context(self, address: str, models: Mapping[str, int | None] | None) -> int:
        """The tokens for prompt and answer: `context_tokens`, or the context that the server lists,
        less `thinking_tokens`. Raises StartError if it is unknown or too small, or the server does
        not serve the model."""
        served = models.get(self.model) if models else None
        total, thinking = self.context_tokens or served, self.thinking_tokens
        if models is not None and self.model not in models:
            served_ones = hint(self.model, list(models))
            raise StartError(f"engine.model={self.model}: not served by the server; {served_ones}")
        if total is None:
            why = "the server does not list its context length"
            raise StartError(f"{address}: {why}; set engine.context_tokens")
        if served and total > served:
            why = f"the server has a context of {served}; lower it"
            raise StartError(f"engine.context_tokens={total}: {why}")
        if total <= thinking:
            why = f"leaves no tokens for prompt and answer in a context of {total}; lower it"
            raise StartError(f"engine.thinking_tokens={thinking}: {why}")
        return total - thinking


class OpenAIEngine:
    """Sends requests to one server, at most `sequences` at a time.

    The server's reasoning text becomes the Reply's `thinking`. A request allows `thinking_tokens`
    more than the reply budget. A server has one limit for both, so an answer may also use tokens
    that the thinking has left over.
    """

    def __init__(self, settings: OpenAISettings, client: OpenAIClient, context_tokens: int) -> None:
        self.name = settings.title
        self.context_tokens = context_tokens
        self._settings = settings
        self._client = client
        self._reply_slots = asyncio.Semaphore(settings.sequences)
        self._count_slots = asyncio.Semaphore(settings.sequences)
        self._counts: dict[str, int] = {}  # tokens, by hash of the messages
        self._server_counts_exactly = False
        self._short_request = Request(
            prompt="check_server",
            fields=None,
            messages=({"role": "user", "content": "Say: ready"},),
            max_reply_tokens=16,
            constraint=Constraint(choices=("ready",)) if settings.takes_constraints else None,
            temperature=settings.temperature,
        )
        probe = partial(self._reply, self._short_request)  # its text does not matter
        self._gate = Gate(client.address, probe, settings.outage_minutes, settings.retries)
        self.findings: dict[str, str] = {}  # lines about unusual behavior of the server, by subject
        self.waiting_for, self.close = self._gate.waiting_for, client.close

    async def generate(self, request: Request) -> Reply:
        """The reply to one request. If the server answers other requests but not this one, a Reply
        with finish_reason abort and the server's message; `Gate` says after how long.

        Problem: refused if the server refuses it by an HTTP status; context_overflow if it does so
        because of the length; timeout after `deadline_seconds`, not counted while the server is
        unreachable. Raises OutageError if it stays unreachable or refuses the key.
        """
        async with self._reply_slots:
            try:
                return await self._gate.send(partial(self._reply, request))
            except FailedError as error:
                is_late = error.problem == "timeout"
                return Reply(
                    text="" if is_late else str(error),
                    finish_reason="abort",
                    seconds=self._settings.deadline_seconds if is_late else 0.0,
                    problem=error.problem,
                )

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        """The tokens of the whole prompt, by the server's /tokenize if `check_server` found it to
        be exact (vLLM's is); otherwise an estimate from UTF-8 bytes, too high for most prose."""
        sizes = (len(message["content"].encode()) for message in messages)
        estimate = sum(-(-size // _BYTES_PER_TOKEN) + _TEMPLATE_TOKENS for size in sizes)
        if not self._server_counts_exactly:
            return estimate
        key = sha(list(messages), 32)
        if key not in self._counts:
            count = None
            async with self._count_slots:
                with suppress(FailedError):
                    count = await self._gate.send(partial(self._count, messages))
            if len(self._counts) >= _CACHED_COUNTS:
                self._counts.pop(next(iter(self._counts)))
            self._counts[key] = estimate if count is None else count
        return self._counts[key]

    async def check_server(self) -> None:
        """Send one short request, and compare its token count with that of /tokenize. Raises
        FailedError without a reply, StartError where the reply breaks its constraint."""
        request = self._short_request
        reply = await self._reply(request)
        if request.constraint and reply.finish_reason == "stop" and reply.text != "ready":
            key = f"engine.structured_outputs={self._settings.structured_outputs}"
            raise StartError(f"{key}: the server ignores constraints; set it to none")
        with suppress(FailedError):
            count = await self._count(request.messages)
            self._server_counts_exactly = count == reply.prompt_tokens

    async def _reply(self, request: Request) -> Reply:
        """The server's reply, or an aborted one if its token count shows that it has cut the
        prompt, as some servers do silently."""
        settings, constraint, messages = self._settings, request.constraint, request.messages
        most_tokens = request.max_reply_tokens + settings.thinking_tokens
        body = {
            settings.max_tokens_key: most_tokens,
            **({} if request.temperature is None else {"temperature": request.temperature}),
            **({"seed": request.seed} if request.temperature != 0 else {}),
            # in the form that vLLM's server takes
            **({"structured_outputs": constraint.structured_outputs()} if constraint else {}),
            **settings.args,
        }
        started = time.perf_counter()
        reply = await self._in_time(self._client.complete(messages, body, most_tokens))
        reply = replace(reply, seconds=time.perf_counter() - started)
        num_read, least = reply.prompt_tokens, least_tokens(messages)
        if num_read == 0 or num_read + reply.cached_tokens >= _LEAST_READ * least:
            return reply  # some servers count cached tokens apart
        cut = f"the server read {num_read} tokens of a prompt that has at least {least}"
        fix = (
            "it cuts prompts in silence; raise its context (num_ctx of Ollama), then gistmill "
            f"retry, or set engine.context_tokens={num_read} or what it has"
        )
        self.findings.setdefault("cut", redacted(f"{self._client.address}: {cut}: {fix}"))
        return replace(reply, text=cut, thinking=None, finish_reason="abort")

    async def _count(self, messages: Sequence[Message]) -> int | None:
        return await self._in_time(self._client.count_tokens(messages, self._settings.args))

    async def _in_time(self, response: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout(self._settings.deadline_seconds):
                return await response
        except TimeoutError:
            why = f"no reply within {self._settings.deadline_seconds:g} s"
            raise FailedError(why, "timeout") from None


def least_tokens(messages: Sequence[Message]) -> int:
    """A lower bound on the tokens of messages with any tokenizer: one a word, and one for every
    four characters of scripts without spaces between words."""
    text = " ".join(message["content"] for message in messages)
    return len(text.split()) + sum(map(len, _UNSPACED.findall(text))) // 4
