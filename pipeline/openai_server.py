"""An OpenAI-compatible server over HTTP, and nothing but that. The only file that imports openai.

The key comes from the environment and stays in the client: no error text has it.
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
_SAID_CHARS = 300
_FINISHED: Mapping[str | None, FinishReason] = {"stop": "stop", "length": "length"}
# vLLM, hosted ones, llama.cpp and SGLang, in this order: each has words of its own for it.
_OVERFLOW = re.compile(
    r"max_model_len|context[ _]length|exceed_context_size|longer than the model", re.IGNORECASE
)


class RefusedError(Exception):
    """The server does not take a request; where that may pass, not after `retries` either."""

    def __init__(self, status: int, said: str, problem: Problem | None = None) -> None:
        super().__init__(f"{status}: {said}")
        self.status = status
        self.problem = problem


class OpenAIServer:
    """Retries what may pass (429, 5xx, lost connections) up to `retries` times.

    Everything raises EngineError, in one line with the mend, where no server answers or it refuses
    the key (401), and RefusedError where it refuses the request.
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
            timeout=Timeout(None, connect=_CONNECT_SECONDS),  # the deadline of a request is Ask's
        )

    async def models(self) -> dict[str, int | None] | None:
        """Context length in tokens by model; null where it is not told (vLLM and SGLang do).

        Null too where what answers is no such server.
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
        """The reply to a chat; `seconds` are the caller's to measure."""
        chat: Any = list(messages)
        with self._errors():
            completion = await self._client.chat.completions.create(
                model=model, messages=chat, extra_body=body
            )
        return _reply(completion)

    async def count_tokens(
        self, model: str, messages: Sequence[Message], body: Mapping[str, Any]
    ) -> int | None:
        """The tokens of a chat by vLLM's /tokenize; null where the server has no such thing."""
        url = f"{self._root}/tokenize"
        asked = {**body, "model": model, "messages": list(messages)}
        try:
            with self._errors():
                answer: Any = await self._client.post(url, cast_to=object, body=asked)
        except RefusedError:
            return None
        count = answer.get("count") if isinstance(answer, dict) else None
        return count if isinstance(count, int) else None

    @property
    def key_refused(self) -> str:
        """Nothing of what the server says, which may quote the key."""
        if self._key:
            return f"{self.address}: the key in {self._key_env} is refused; correct it"
        name = self._key_env or "the variable that engine.api_key_env names"
        return f"{self.address}: the server wants a key; put it into {name}"

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """The client's errors as ours."""
        import openai

        try:
            yield
        except openai.AuthenticationError:
            raise EngineError(self.key_refused) from None
        except openai.APIStatusError as error:
            is_overflow = error.status_code == 400 and _OVERFLOW.search(str(error.body))
            problem: Problem | None = "context_overflow" if is_overflow else None
            raise RefusedError(error.status_code, self._said(error.body), problem) from None
        except openai.APIConnectionError as error:
            why = " ".join(str(error.__cause__).split()) or type(error.__cause__).__name__
            told = f"{self.address}: no server answers ({why}); start it or correct the address"
            raise EngineError(told) from None
        except json.JSONDecodeError:
            raise RefusedError(200, "no JSON") from None

    def _said(self, body: object) -> str:
        """What a refusal says, in one short line and without the key."""
        said = body.get("message", body) if isinstance(body, dict) else body
        text = " ".join(str(said).split())
        return (text.replace(self._key, "***") if self._key else text)[:_SAID_CHARS]


def _reply(completion: Any) -> Reply:
    """A reply from what the server sent; other servers leave out other parts."""
    choices = getattr(completion, "choices", None)
    if not choices:
        return Reply(text="", finish_reason="abort")
    message, usage = choices[0].message, completion.usage
    thinking = getattr(message, "reasoning", None) or getattr(message, "reasoning_content", None)
    details = usage and usage.prompt_tokens_details
    return Reply(
        text=message.content or "",
        thinking=thinking,
        finish_reason=_FINISHED.get(choices[0].finish_reason, "abort"),
        prompt_tokens=usage.prompt_tokens if usage else 0,
        cached_tokens=(details.cached_tokens or 0) if details else 0,
        reply_tokens=usage.completion_tokens if usage else 0,
    )
