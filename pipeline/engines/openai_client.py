"""HTTP client of one OpenAI-compatible server. The only file that imports openai.

The API key comes from the environment and never gets into an error message.
"""

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pipeline.core.engine import FinishReason, OnText, Reply
from pipeline.core.prompts import Message
from pipeline.core.redaction import redacted, remember_key
from pipeline.engines.outage import FailedError
from pipeline.engines.vllm.control_tokens import with_breaks, without_breaks

_CONNECT_SECONDS = 5.0
_SHOWN_CHARS = 300  # of a server's own error message
_NAME_CHARS = 200  # of the model that a server says it is
_KEY, _AWAY = (401, 403), (429, 503)  # HTTP statuses: the key is refused, or every request is
_MOST_TOKENS = 2**31
_FINISH_REASONS: Mapping[str | None, FinishReason] = {"stop": "stop", "length": "length"}
# Errors about too long prompts: of vLLM, hosted servers, llama.cpp and SGLang, in this order.
_OVERFLOW = re.compile(
    r"max_model_len|context[ _]length|exceed_context_size|longer than the model", re.IGNORECASE
)


class OpenAIClient:
    """Requests to the server at `base_url`.

    Control tokens that messages spell get a break in what is sent, which is taken out of replies.
    Every method raises FailedError, with one line that names the address or has the server's own
    words, where it gets no reply. Only a listing of models is retried here, up to `retries` times.
    """

    def __init__(self, base_url: str, api_key_env: str | None, retries: int) -> None:
        from openai import AsyncOpenAI, Timeout

        self.address = f"engine.base_url={base_url}"
        self._retries = retries
        self._root = base_url.removesuffix("/v1")
        self._key_env = api_key_env
        self._key = remember_key(os.environ.get(api_key_env, "")) if api_key_env else ""
        self._client = AsyncOpenAI(
            base_url=base_url,
            api_key=self._key or "none",
            max_retries=0,
            # No limit on a reply: pipeline/asking/ask.py has the deadline of a request.
            timeout=Timeout(None, connect=_CONNECT_SECONDS),
        )

    async def models(self) -> dict[str, int | None] | None:
        """The served models and the context length of each in tokens.

        A length is None if the server does not list it (vLLM and SGLang do). None if the answer is
        no list of models: the server is not OpenAI-compatible.
        """
        with self._errors():
            client = self._client.with_options(max_retries=self._retries)
            answer: Any = await client.get("/models", cast_to=object)
        listed = answer.get("data") if isinstance(answer, dict) else None
        if not isinstance(listed, list):
            return None
        models = [model for model in listed if isinstance(model, dict)]
        return {
            model["id"]: _length(model.get("max_model_len"))
            for model in models
            if isinstance(model.get("id"), str)
        }

    async def complete(
        self,
        model: str,
        messages: Sequence[Message],
        body: Mapping[str, Any],
        on_text: OnText | None = None,
    ) -> Reply:
        """The reply to a chat, without `seconds`: the caller measures them. With `on_text` it is
        streamed. Raises FailedError if the response has no text."""
        request: Any = {"model": model, "messages": with_breaks(messages), "extra_body": body}
        with self._errors():
            if on_text:
                completion: Any = await self._streamed(request, on_text)
            else:
                completion = await self._client.chat.completions.create(**request)
        reply = _reply(completion)
        if reply is None:
            raise FailedError("the response has no reply of text", "either")
        return reply

    async def _streamed(self, request: Mapping[str, Any], on_text: OnText) -> Any:
        """The completion, whose text so far `on_text` is called with at every piece."""
        counts: Any = {"include_usage": True}
        streaming = self._client.chat.completions.stream(**request, stream_options=counts)
        async with streaming as stream:
            async for event in stream:
                if event.type == "content.delta":
                    on_text(without_breaks(event.snapshot))
            return await stream.get_final_completion()

    async def count_tokens(
        self, model: str, messages: Sequence[Message], body: Mapping[str, Any]
    ) -> int | None:
        """The tokens of a chat, by vLLM's /tokenize; None if the server has no such endpoint."""
        url = f"{self._root}/tokenize"
        request = {**body, "model": model, "messages": with_breaks(messages)}
        try:
            with self._errors():
                answer: Any = await self._client.post(url, cast_to=object, body=request)
        except FailedError as error:
            if error.blame == "request":
                return None
            raise
        count = answer.get("count") if isinstance(answer, dict) else None
        return count if isinstance(count, int) else None

    async def close(self) -> None:
        await self._client.close()

    def _key_refused(self, words: str) -> str:
        if self._key:
            return (
                f"{self.address}: the server refuses the key in {self._key_env} ({words}); "
                "correct it"
            )
        name = self._key_env or "the variable that engine.api_key_env names"
        return f"{self.address}: the server requires an API key ({words}); put it into {name}"

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn the openai package's exceptions into FailedError."""
        import openai

        http = _http_library()
        try:
            yield
        except openai.APIStatusError as error:
            raise self._refused(error.status_code, error.body, error.response.headers) from None
        except openai.APIConnectionError as error:
            cause = error.__cause__
            why = " ".join(str(cause).split()) or type(cause).__name__
            # If there was a connection, this request may be what ended it.
            is_new = isinstance(cause, (http.ConnectError, http.ConnectTimeout))
            raise FailedError(
                f"{self.address}: no server answers ({why}); start it or correct the address",
                "server" if is_new else "either",
            ) from None
        except http.HTTPError as error:  # in the middle of a response
            raise FailedError(
                f"the response was cut off ({type(error).__name__})", "either"
            ) from None
        except (ValueError, RecursionError):  # nested too deeply
            raise FailedError("the response is not JSON", "either") from None
        except (openai.OpenAIError, http.InvalidURL, http.StreamError) as error:
            raise FailedError(f"no reply ({type(error).__name__}: {error})", "either") from None

    def _refused(self, status: int, body: object, headers: Mapping[str, str]) -> FailedError:
        """The error for an error status."""
        words = f"{status}: {self._message(body)}"
        if status in _KEY:
            return FailedError(self._key_refused(words), "either", is_key=True)
        if status in _AWAY:
            after = headers.get("retry-after", "")
            wait = float(after) if after.isdecimal() else 0.0
            return FailedError(words, "server", "refused", after=wait)
        if status == 400 and _OVERFLOW.search(str(body)):
            return FailedError(words, "request", "context_overflow")
        return FailedError(words, "either" if status >= 500 else "request", "refused")

    def _message(self, body: object) -> str:
        """The message in the body of an error response, in one short line and without the key."""
        message = body.get("message", body) if isinstance(body, dict) else body
        return redacted(" ".join(str(message).split()))[:_SHOWN_CHARS]


def _http_library() -> Any:
    """The library by which the openai package sends requests, and whose errors it passes on in the
    middle of a response: httpx, or from its version 3 on httpx2."""
    import openai

    (module,) = {base.__module__ for base in openai.DefaultHttpxClient.__bases__}
    return sys.modules[module.partition(".")[0]]


def reply_in(body: object) -> Reply:
    """The Reply in the body of a response that was read from a file. Raises FailedError if it has
    no text."""
    from openai.types.chat import ChatCompletion

    reply = _reply(ChatCompletion.construct(**body)) if isinstance(body, dict) else None
    if reply is None:
        raise FailedError("the response has no reply of text", "either")
    return reply


def _reply(completion: Any) -> Reply | None:
    """A Reply from a chat completion; None if the content is no text. Servers differ in which parts
    they leave out, and nothing has validated the values."""
    choice = next(iter(_listed(getattr(completion, "choices", None))), None)
    message = getattr(choice, "message", None)
    content, thoughts = _without_thoughts(getattr(message, "content", None))
    text = _text(content)
    if message is None or text is None:
        return None
    fields = (getattr(message, name, None) for name in ("reasoning", "reasoning_content"))
    thinking = next(filter(None, fields), thoughts)
    usage = getattr(completion, "usage", None)
    reason = getattr(choice, "finish_reason", None)
    return Reply(
        text=without_breaks(text),
        thinking=without_breaks(_text(thinking) or "") or None,
        answered_by=_name(getattr(completion, "model", None)),
        finish_reason=_FINISH_REASONS.get(reason if isinstance(reason, str) else None, "abort"),
        prompt_tokens=_tokens(usage, "prompt_tokens"),
        cached_tokens=_tokens(getattr(usage, "prompt_tokens_details", None), "cached_tokens"),
        reply_tokens=_tokens(usage, "completion_tokens"),
    )


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _without_thoughts(content: Any) -> tuple[Any, str | None]:
    """A content without its parts of thinking, which Mistral's API gives, and their text."""
    if not isinstance(content, list):
        return content, None
    thought = [part for part in content if isinstance(part, dict) and "thinking" in part]
    texts = (_text(part["thinking"]) or "" for part in thought)
    return [part for part in content if part not in thought], "\n".join(texts)


def _text(content: Any) -> str | None:
    """The text of a content, which is a text or a list of parts with a text each; None if it is
    neither."""
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        texts = [part for part in parts if isinstance(part, str)]
        return "".join(texts) if len(texts) == len(content) else None
    return content or "" if content is None or isinstance(content, str) else None


def _name(model: Any) -> str | None:
    """The name of a model; None if it is no text, or an empty one."""
    return redacted(model.strip())[:_NAME_CHARS] or None if isinstance(model, str) else None


def _length(given: Any) -> int | None:
    is_number = isinstance(given, int) and not isinstance(given, bool)
    return given if is_number and 0 < given <= _MOST_TOKENS else None


def _tokens(usage: Any, name: str) -> int:
    """A count of tokens; 0 if it is missing or no such number."""
    count = usage.get(name) if isinstance(usage, dict) else getattr(usage, name, None)
    return count if isinstance(count, int) and 0 <= count <= _MOST_TOKENS else 0
