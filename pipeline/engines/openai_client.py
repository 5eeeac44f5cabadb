"""HTTP client of one OpenAI-compatible server, and the gate that holds requests back while it is
away. The only file that imports openai. The API key never gets into an error message."""

import asyncio
import json
import math
import os
import random
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from pipeline.core.engine import FinishReason, Reply
from pipeline.core.errors import (
    OutageError,
    Problem,
    contained,
    environment_errors,
    redacted,
    remember_key,
    through_proxy,
)
from pipeline.core.prompts import Message
from pipeline.engines.vllm.chat_tokenizer import with_breaks, without_breaks

T = TypeVar("T")
Body = Mapping[str, Any]  # of a request, beside its model and messages
_CONNECT_SECONDS = 5.0
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 30.0  # seconds; waits double from one to the other
_MOST_ASKED_FOR = 60.0  # seconds of waiting that a server may ask for (Retry-After)
_SHOWN_CHARS = 300  # of a server's own error message
_NAME_CHARS = 200  # of the model that a server says it is
_KEY, _BUSY = (401, 403), (429, 503)  # HTTP statuses: the key is refused, or every request is
_TOO_LARGE = 413
_OF_PROXIES = (407, 502, 503, 504)  # statuses that a proxy before the server may answer with
_MOST_TOKENS = 2**31
# Words of servers for the end of a reply, in lower case. A text counts as a whole reply if its end
# has another word, or none.
_WORDS_OF_ENDS: Mapping[FinishReason, str] = {
    "stop": "stop eos eos_token end_turn stop_sequence complete finished",
    "length": "length max_tokens max_output_tokens max_length model_length token_limit "
    "model_context_window_exceeded",
    "abort": "abort aborted cancelled error timeout network_error insufficient_system_resource "
    "content_filter content_filtered safety recitation refusal sensitive blocklist spii "
    "prohibited_content tool_calls tool_use function_call malformed_function_call",
}
_ENDS = {word: end for end, words in _WORDS_OF_ENDS.items() for word in words.split()}
# Errors about a prompt that is too long have a word for the prompt near one for excess, or a name
# that says both. Errors about time and rates have the same words: `_OVERFLOW` leaves them out.
_PROMPT = (
    r"prompt|(?<!invalid )input|context|conversation|message|sequence length|model length"
    r"|max_seq_len|max_num_tokens|token[ _]limit"
)
_EXCESS = (
    r"(?<!took )too (?:long|large|big|many)|exceed|(?:longer|larger) than|at most|no more than"
    r"|greater than the|of only|must (?:be <|be less|have less)|reduce|maximum|only supports"
    r"|limit of|\d >|should be \[1,"
)
_OVERFLOW = re.compile(
    r"\A(?!.*(?:deadline|timed? ?out|time limit|rate limit|per minute|quota))"
    rf".*?(?:(?:{_PROMPT}).{{0,60}}?(?:{_EXCESS})|(?:{_EXCESS}).{{0,60}}?(?:{_PROMPT})"
    r"|max_model_len|context_(?:length|window)|ContextWindow|exceed_context|tokens_limit_reached"
    r"|string_(?:too_long|above_max_length)"
    r"|request(?:_| body | entity | is | )too[ _](?:large|long))",
    re.IGNORECASE | re.DOTALL,
)
_SEARCHED_CHARS = 1000  # of an error: some servers repeat the prompt in it
# These statuses are about the key, money, the address and rates. With them a prompt is too long
# only if the server calls the single request larger than any rate allows.
_OTHER_MATTERS = (*_KEY, 402, 404, *_BUSY)
_OVER_EVERY_RATE = re.compile(r"request too large", re.IGNORECASE)


class FailedError(Exception):
    """A request without a reply. `problem`: the row's; None: engine_failed. `status`: of HTTP, 0
    without a response. `after`: the seconds that the server asks to wait. `is_busy`: the server
    says that it is busy; `is_key`: it refuses the key; `is_final`: it would answer the same
    again."""

    def __init__(
        self, why: str, problem: Problem | None = None, status: int = 0, after: float = 0.0
    ) -> None:
        super().__init__(redacted(why))
        self.problem, self.after = problem, min(after, _MOST_ASKED_FOR)
        self.is_busy, self.is_key = status in _BUSY, status in _KEY
        is_refused = 400 <= status < 500 and not (self.is_busy or self.is_key)
        self.is_final = is_refused or problem in ("timeout", "context_overflow")


class Gate:
    """Sends the requests to one server, and holds them back while it is away.

    After a request has failed, one probe is sent for all requests. While probes fail, the gate is
    closed, for up to `minutes`; then the request is sent again. If the first probe succeeds, the
    request itself is at fault. Then it is given up at once if the answer is final, and otherwise
    sent again: up to `retries` times, or for up to `minutes` if the server says that it is busy, as
    a limit of requests a minute refuses ordinary requests.
    """

    def __init__(
        self, address: str, probe: Callable[[], Awaitable[object]], minutes: float, retries: int
    ) -> None:
        self._address, self._probe = address, probe
        self._seconds, self._retries = 60 * minutes, retries
        self._probing: asyncio.Task[bool] | None = None
        self._away_since: float | None = None  # until a request is answered
        self._is_closed = False

    def waiting_for(self) -> str:
        """The server that requests wait for, and for how long now; "" if they do not wait."""
        if self._away_since is None or not self._is_closed:
            return ""
        return f"{self._address} since {time.monotonic() - self._away_since:.0f} s"

    async def send(self, request: Callable[[], Awaitable[T]]) -> T:
        """The result of `request`, called again after failures. Raises FailedError if the server
        answers the probe but not this request, OutageError if it stays away."""
        attempt, failures, busy_since = 0, 0, math.inf
        while True:
            attempt += 1
            if self._is_closed:
                await self._is_there()
            try:
                reply = await request()
                self._away_since = None
                return reply
            except FailedError as error:
                if error.problem == "context_overflow":
                    raise
                is_there = await self._is_there()
                busy_since = min(busy_since, time.monotonic()) if is_there else math.inf
                failures += not error.is_busy
                # After an outage it is sent once more at least, not for ever: it may cause them.
                is_given_up = failures > max(self._retries, not is_there)
                if error.is_busy:
                    is_given_up = time.monotonic() - busy_since >= self._seconds
                if is_given_up or (is_there and error.is_final):
                    raise
                await asyncio.sleep(_wait(attempt, error.after) if is_there else 0.0)

    async def _is_there(self) -> bool:
        """Wait until the server answers a probe, which all requests share. True if it answered the
        first one. Raises OutageError if it stays away."""
        if self._probing is None or (self._probing.done() and not self._probing.exception()):
            self._probing = asyncio.create_task(self._until_it_answers())
        return await asyncio.shield(self._probing)

    async def _until_it_answers(self) -> bool:
        failures = 0
        while True:
            try:
                await self._probe()
                self._is_closed = False
                return failures == 0
            except FailedError as error:
                failures += 1
                self._is_closed, now = True, time.monotonic()
                self._away_since = self._away_since or now
                if error.is_key or now - self._away_since >= self._seconds:
                    words = f"{self._address}: {error}"
                    if not error.is_key:
                        words += f", for {self._seconds / 60:g} minutes (engine.outage_minutes)"
                    raise OutageError(f"{words}; run the same command to resume") from None
                await asyncio.sleep(_wait(failures, error.after))


def _wait(failures: int, after: float) -> float:
    """The seconds to wait, with jitter, so that workers do not come back all at once."""
    longest = min(_LONGEST_WAIT, _FIRST_WAIT * 2.0 ** min(failures - 1, 10))
    return max(after, longest * random.uniform(0.5, 1.0))


class OpenAIClient:
    """Requests to a model of the server at `base_url`.

    Control tokens that messages spell are broken before sending, and the breaks removed from
    replies. Raises StartError if a proxy or certificates that the environment names cannot be used.
    Every method raises FailedError if it gets no reply, with one line, if possible in the server's
    own words.
    """

    def __init__(self, base_url: str, model: str, api_key_env: str | None, retries: int) -> None:
        import openai

        self.address = f"engine.base_url={base_url}"
        self._base_url, self._model, self._retries = base_url, model, retries
        self._key_env = api_key_env
        self._key = remember_key(os.environ.get(api_key_env, "")) if api_key_env else ""
        with environment_errors(self.address):
            self._client = openai.AsyncOpenAI(
                base_url=base_url,
                api_key=self._key or "none",
                max_retries=0,
                # A reply may take any time: the engine keeps a request's deadline.
                timeout=openai.Timeout(None, connect=_CONNECT_SECONDS),
            )
        self.close = self._client.close

    async def models(self) -> dict[str, int | None] | None:
        """The served models, and the context length of each in tokens; a length is None if the
        server does not list it (vLLM and SGLang do). Returns None for no list of models."""
        client = self._client.with_options(max_retries=self._retries)
        answer = await self._answer(client.get("/models", cast_to=object))
        models = _field(answer, "data") or ([] if _field(answer, "object") == "list" else None)
        if not isinstance(models, list):
            return None
        return {
            name: _tokens(model, "max_model_len") or None
            for model in models
            if isinstance(name := _field(model, "id"), str)
        }

    async def complete(self, messages: Sequence[Message], body: Body, most_tokens: int) -> Reply:
        """The reply to a chat, without `seconds`, which the caller measures. The body allows the
        reply `most_tokens`. Raises FailedError if the response has no text."""
        return self._reply(await self._post("/chat/completions", messages, body), most_tokens)

    async def count_tokens(self, messages: Sequence[Message], body: Body) -> int | None:
        """The tokens of a chat, by vLLM's /tokenize; None if the server has no such endpoint."""
        try:
            url = f"{self._base_url.removesuffix('/v1')}/tokenize"
            return _tokens(await self._post(url, messages, body), "count") or None
        except FailedError as error:
            if error.is_final:
                return None
            raise

    async def _post(self, url: str, messages: Sequence[Message], body: Body) -> Any:
        request = {**body, "model": self._model, "messages": with_breaks(messages)}
        return await self._answer(self._client.post(url, cast_to=object, body=request))

    async def _answer(self, response: Awaitable[object]) -> Any:
        """The answer as JSON. Raises FailedError for any exception of the openai package, and of
        its HTTP and JSON libraries in the middle of a response."""
        import openai

        with contained() as raised:
            answer = await response
            # It is a text if the server does not declare it as JSON.
            return json.loads(answer) if isinstance(answer, str) else answer
        error = raised.error
        if isinstance(error, openai.APIStatusError):
            raise self._refused(error.status_code, error.body, error.response.headers)
        if isinstance(error, openai.APIConnectionError):
            why = " ".join(str(error.__cause__).split()) or type(error.__cause__).__name__
            through, fix = through_proxy(self._base_url), "start it or correct the address"
            if "CERTIFICATE_VERIFY_FAILED" in why:
                fix = "name a file with its certificate, or its authority's, in SSL_CERT_FILE"
            elif through:
                fix = "correct that variable, or name the server's host in NO_PROXY"
            raise FailedError(f"no server answers{through} ({why}); {fix}")
        if isinstance(error, ValueError):
            raise FailedError("the response is not JSON")
        raise FailedError(f"no reply ({type(error).__name__}: {error})")

    def _refused(self, status: int, body: object, headers: Mapping[str, str]) -> FailedError:
        through = through_proxy(self._base_url) if status in _OF_PROXIES else ""
        words = f"{status}{through}: {server_words(body)}"
        if status in _KEY:
            variable = self._key_env or "the variable that engine.api_key_env names"
            refusal = f"requires an API key ({words}); put it into {variable}"
            if self._key:
                refusal = f"refuses the key in {variable} ({words}); correct it"
            return FailedError(f"the server {refusal}", status=status)
        if _is_too_long(status, body):
            return FailedError(words, "context_overflow", status)
        return FailedError(words, "refused", status, _seconds_to_wait(headers))

    def _reply(self, completion: Any, most_tokens: int) -> Reply:
        """The Reply in a chat completion, of which servers leave out different parts. Raises
        FailedError if it has no text, in the server's own words if it has an error instead."""
        choices = _field(completion, "choices")
        choice = choices[0] if isinstance(choices, list) else None
        message = choice.get("message") if isinstance(choice, dict) else None
        content = message.get("content") if isinstance(message, dict) else ()  # which is no text
        parts = content if isinstance(content, list) else []
        # As in Mistral's API.
        thoughts = [part for part in parts if isinstance(part, dict) and "thinking" in part]
        text = _text([part for part in parts if part not in thoughts] if parts else content)
        error = _field(completion, "error", "message", "detail") or _field(choice, "error")
        if error and not text:
            raise self._refused_within(error, _field(completion, "code"))
        if text is None:
            raise FailedError("the response has no reply of text")
        thinking = _text(_field(message, "reasoning", "reasoning_content"))
        thinking = thinking or "\n".join(_text(part["thinking"]) or "" for part in thoughts)
        name, usage = _field(completion, "model"), _field(completion, "usage")
        reply_tokens = _tokens(usage, "completion_tokens")
        reason = _field(choice, "finish_reason")
        end = _ENDS.get(str(reason).lower()) or ("stop" if text else "abort")
        # Only the API's own word for an end tells that a reply was not cut at the budget.
        if end == "stop" != reason and most_tokens <= reply_tokens:
            end = "length"
        return Reply(
            text=without_breaks(text),
            thinking=without_breaks(thinking) or None,
            answered_by=redacted(_text(name) or "").strip()[:_NAME_CHARS] or None,
            finish_reason=end,
            prompt_tokens=_tokens(usage, "prompt_tokens"),
            cached_tokens=_tokens(_field(usage, "prompt_tokens_details"), "cached_tokens"),
            reply_tokens=reply_tokens,
        )

    def _refused_within(self, error: object, code: object) -> FailedError:
        """The error in a response of status 200; its code counts as the status."""
        codes = (_field(error, "code"), _field(error, "status"), code)
        status = next((int(code) for code in map(str, codes) if code.isdecimal()), 0)
        if 400 <= status < 600:
            return self._refused(status, error, {})
        overflow = _is_too_long(status, error)
        return FailedError(server_words(error), "context_overflow" if overflow else None)


def _is_too_long(status: int, body: object) -> bool:
    words = _OVER_EVERY_RATE if status in _OTHER_MATTERS else _OVERFLOW
    return status == _TOO_LARGE or bool(words.search(_values(body)[:_SEARCHED_CHARS]))


def _values(body: object, depth: int = 5) -> str:
    """All values in the body of an error: messages, codes, and answers of other servers."""
    parts = body.values() if isinstance(body, dict) else body if isinstance(body, list) else ()
    return " ".join(_values(part, depth - 1) for part in parts) if parts and depth else str(body)


def server_words(body: object, depth: int = 5) -> str:
    """The message in the body of an error, in one short line and without the key. Servers nest it
    in different fields."""
    words = str(body)
    if depth and isinstance(body, list):
        words = " ".join(server_words(part, depth - 1) for part in body[:3])
    elif depth and (inner := _field(body, "message", "error", "detail", "msg")):
        words = server_words(inner, depth - 1)
    return redacted(" ".join(words.split()))[:_SHOWN_CHARS]


def _seconds_to_wait(headers: Mapping[str, str]) -> float:
    """The seconds of a Retry-After; 0 without one, or if it is a date."""
    with suppress(ValueError):
        seconds = float(headers.get("retry-after", ""))
        return seconds if 0 < seconds < math.inf else 0.0
    return 0.0


def _field(fields: Any, *names: str) -> Any:
    """The first of these fields that has a value; None if there is none."""
    values = (fields.get(name) for name in names) if isinstance(fields, dict) else ()
    return next(filter(None, values), None)


def _text(content: Any) -> str | None:
    """The text of a content, which is a text or a list of parts; None if it is neither."""
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        texts = [part for part in parts if isinstance(part, str)]
        return "".join(texts) if len(texts) == len(content) else None
    return content or "" if content is None or isinstance(content, str) else None


def _tokens(fields: Any, name: str) -> int:
    """A count of tokens; 0 if it is missing or invalid."""
    count = _field(fields, name)
    return count if type(count) is int and 0 <= count <= _MOST_TOKENS else 0
