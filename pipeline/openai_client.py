"""HTTP client of one OpenAI-compatible server. The only file that imports openai.

The API key comes from the environment and never gets into an error message.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pipeline.engine import FinishReason, Reply
from pipeline.errors import EngineError, Problem
from pipeline.prompts import Message

_CONNECT_SECONDS = 5.0
_SHOWN_CHARS = 300  # of a server's own error message
_MOST_TOKENS = 2**31
_FINISH_REASONS: Mapping[str | None, FinishReason] = {"stop": "stop", "length": "length"}
# Errors about too long prompts: of vLLM, hosted servers, llama.cpp and SGLang, in this order.
_OVERFLOW = re.compile(
    r"max_model_len|context[ _]length|exceed_context_size|longer than the model", re.IGNORECASE
)


class RefusedError(Exception):
    """The server answered with an error status; temporary errors have been retried.

    `problem`: context_overflow where the request is too long, else null.
    """

    def __init__(self, status: int, message: str, problem: Problem | None = None) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.problem = problem


class OpenAIClient:
    """Requests to the server at `base_url`.

    Temporary errors (429, 5xx, lost connections) are retried up to `retries` times. Every method
    raises RefusedError where the server answers with an error status, and EngineError, in one line
    that says what to do, where no server answers or it refuses the key (401).
    """

    def __init__(self, base_url: str, api_key_env: str | None, retries: int) -> None:
        from openai import AsyncOpenAI, Timeout

        self.address = f"engine.base_url={base_url}"
        self._root = base_url.removesuffix("/v1")
        self._key_env = api_key_env
        self._key = os.environ.get(api_key_env) if api_key_env else None
        self._client = AsyncOpenAI(
            base_url=base_url,
            api_key=self._key or "none",
            max_retries=retries,
            # No limit on a reply: pipeline/ask.py has the deadline of a request.
            timeout=Timeout(None, connect=_CONNECT_SECONDS),
        )

    async def models(self) -> dict[str, int | None] | None:
        """The served models and the context length of each in tokens.

        A length is null where the server does not list it (vLLM and SGLang do). Null where the
        answer is no list of models: the server is not OpenAI-compatible.
        """
        with self._errors():
            answer: Any = await self._client.get("/models", cast_to=object)
        listed = answer.get("data") if isinstance(answer, dict) else None
        if not isinstance(listed, list):
            return None
        return {model["id"]: model.get("max_model_len") for model in listed}

    async def complete(
        self, model: str, messages: Sequence[Message], body: Mapping[str, Any]
    ) -> Reply:
        """The reply to a chat, without `seconds`: the caller measures them."""
        chat: Any = list(messages)
        with self._errors():
            completion = await self._client.chat.completions.create(
                model=model, messages=chat, extra_body=body
            )
        return _reply(completion)

    async def count_tokens(
        self, model: str, messages: Sequence[Message], body: Mapping[str, Any]
    ) -> int | None:
        """The tokens of a chat, by vLLM's /tokenize; null where the server has no such endpoint."""
        url = f"{self._root}/tokenize"
        request = {**body, "model": model, "messages": list(messages)}
        try:
            with self._errors():
                answer: Any = await self._client.post(url, cast_to=object, body=request)
        except RefusedError:
            return None
        count = answer.get("count") if isinstance(answer, dict) else None
        return count if isinstance(count, int) else None

    @property
    def key_refused(self) -> str:
        """The message for a refused key; it omits the server's own, which may quote the key."""
        if self._key:
            return f"{self.address}: the server refuses the key in {self._key_env}; correct it"
        name = self._key_env or "the variable that engine.api_key_env names"
        return f"{self.address}: the server requires an API key; put it into {name}"

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn the openai package's exceptions into RefusedError and EngineError."""
        import openai

        try:
            yield
        except openai.AuthenticationError:
            raise EngineError(self.key_refused) from None
        except openai.APIStatusError as error:
            is_overflow = error.status_code == 400 and _OVERFLOW.search(str(error.body))
            problem: Problem | None = "context_overflow" if is_overflow else None
            raise RefusedError(error.status_code, self._message(error.body), problem) from None
        except openai.APIConnectionError as error:
            why = " ".join(str(error.__cause__).split()) or type(error.__cause__).__name__
            raise EngineError(
                f"{self.address}: no server answers ({why}); start it or correct the address"
            ) from None
        except json.JSONDecodeError:
            raise RefusedError(200, "the response is not JSON") from None

    def _message(self, body: object) -> str:
        """The message in the body of an error response, in one short line and without the key."""
        message = body.get("message", body) if isinstance(body, dict) else body
        text = " ".join(str(message).split())
        return (text.replace(self._key, "***") if self._key else text)[:_SHOWN_CHARS]


def _reply(completion: Any) -> Reply:
    """A Reply from a chat completion; servers differ in which parts they leave out, and nothing
    checks what they put in. One whose content is no text is an aborted reply."""
    choice = next(iter(_listed(getattr(completion, "choices", None))), None)
    message = getattr(choice, "message", None)
    text = _text(getattr(message, "content", None))
    if message is None or text is None:
        return Reply(text="", finish_reason="abort")
    thinking = getattr(message, "reasoning", None) or getattr(message, "reasoning_content", None)
    usage = getattr(completion, "usage", None)
    reason = getattr(choice, "finish_reason", None)
    return Reply(
        text=text,
        thinking=_text(thinking) or None,
        finish_reason=_FINISH_REASONS.get(reason if isinstance(reason, str) else None, "abort"),
        prompt_tokens=_tokens(usage, "prompt_tokens"),
        cached_tokens=_tokens(getattr(usage, "prompt_tokens_details", None), "cached_tokens"),
        reply_tokens=_tokens(usage, "completion_tokens"),
    )


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(content: Any) -> str | None:
    """A content: text, or a list of parts with a text each; null where it is neither."""
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        texts = [part for part in parts if isinstance(part, str)]
        return "".join(texts) if len(texts) == len(content) else None
    return content or "" if content is None or isinstance(content, str) else None


def _tokens(usage: Any, name: str) -> int:
    """A count of tokens; 0 where there is none, or no such number."""
    count = usage.get(name) if isinstance(usage, dict) else getattr(usage, name, None)
    return count if isinstance(count, int) and 0 <= count <= _MOST_TOKENS else 0
