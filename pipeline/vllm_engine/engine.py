"""Requests and replies of a vLLM engine; thinking kept apart from answers."""

import time
import uuid
from array import array
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from vllm import SamplingParams
from vllm.exceptions import VLLMClientError
from vllm.inputs import tokens_input
from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams
from vllm.v1.engine.async_llm import AsyncLLM
from vllm.v1.engine.exceptions import EngineDeadError, EngineGenerateError

from pipeline.engine import FinishReason, Reply, Request
from pipeline.errors import EngineError
from pipeline.prompts import Constraint, Message
from pipeline.vllm_engine.thinking import Thinking
from pipeline.vllm_engine.tokens import ChatTokens

# All others (abort, error) are the engine giving a request up.
_FINISHED: dict[str | None, FinishReason] = {"stop": "stop", "length": "length"}


class VllmEngine:
    """An `AsyncLLM` of this process; used from one event loop.

    Sampling is by temperature and seed alone: what a model's generation_config.json suggests
    beyond that is not used, its end tokens are. Raises EngineError once the engine is dead.
    """

    def __init__(
        self, name: str, llm: AsyncLLM, tokens: ChatTokens, thinking: Thinking | None
    ) -> None:
        self.name = name
        self.llm = llm
        self._tokens = tokens
        self._thinking = thinking
        room = thinking.room if thinking else 0
        self.context_tokens: int = llm.model_config.max_model_len - room

    @property
    def block_tokens(self) -> int:
        """Of the prefix cache: whole blocks of so many tokens are found again."""
        return int(self.llm.vllm_config.cache_config.block_size)

    async def tokens(self, messages: Sequence[Message]) -> "array[int]":
        """The ids of the whole prompt as `generate` would send it."""
        return await self._tokens.of(messages)

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        return len(await self.tokens(messages))

    async def generate(self, request: Request) -> Reply:
        """The reply. Problem: context_overflow, where prompt and budget do not fit; never asked."""
        started = time.perf_counter()
        prompt = await self.tokens(request.messages)
        if len(prompt) + request.max_reply_tokens > self.context_tokens:
            return self._given_up(prompt, started, is_too_long=True)
        try:
            output = await self._output(prompt, self._sampling(request))
        except EngineDeadError:
            raise EngineError(f"{self.name}: vLLM's engine process is dead") from None
        except (VLLMClientError, EngineGenerateError, ValueError):
            return self._given_up(prompt, started)  # this request only; the next may go well
        answer = self._answer(prompt, output.outputs[0], request.max_reply_tokens)
        return replace(
            answer,
            prompt_tokens=len(prompt),
            cached_tokens=output.num_cached_tokens or 0,
            reply_tokens=len(output.outputs[0].token_ids),
            seconds=time.perf_counter() - started,
        )

    def _answer(self, prompt: "array[int]", made: Any, max_reply_tokens: int) -> Reply:
        """What was made, thinking apart. Tokens that thinking left over are not the answer's."""
        finish_reason = _FINISHED.get(made.finish_reason, "abort")
        if self._thinking is None:
            return Reply(text=made.text, finish_reason=finish_reason)
        thinking, ids = self._thinking.split(prompt, made.token_ids)
        if len(ids) > max_reply_tokens:
            ids, finish_reason = ids[:max_reply_tokens], "length"
        text = self._thinking.text(ids).lstrip()
        return Reply(text=text, thinking=thinking, finish_reason=finish_reason)

    async def _output(self, prompt: "array[int]", sampling: SamplingParams) -> Any:
        """vLLM's output. Cancelling this takes the request out of the engine."""
        made = self.llm.generate(
            tokens_input(list(prompt)),
            sampling,
            uuid.uuid4().hex,
            **(self._thinking.told if self._thinking else {}),
        )
        return [output async for output in made][-1]

    def _sampling(self, request: Request) -> SamplingParams:
        thinking = self._thinking
        return SamplingParams(
            max_tokens=request.max_reply_tokens + (thinking.room if thinking else 0),
            temperature=request.temperature,
            seed=request.seed if request.temperature > 0 else None,
            structured_outputs=_structured(request.constraint),
            thinking_token_budget=thinking.budget if thinking else None,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )

    def _given_up(self, prompt: Sequence[int], started: float, is_too_long: bool = False) -> Reply:
        return Reply(
            text="",
            finish_reason="abort",
            prompt_tokens=len(prompt),
            seconds=time.perf_counter() - started,
            problem="context_overflow" if is_too_long else None,
        )


def _structured(constraint: Constraint | None) -> StructuredOutputsParams | None:
    if constraint is None:
        return None
    if constraint.choices:
        return StructuredOutputsParams(choice=list(constraint.choices))
    return StructuredOutputsParams(regex=constraint.regex)
