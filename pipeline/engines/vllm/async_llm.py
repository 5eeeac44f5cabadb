"""Send requests to vLLM's AsyncLLM and convert its outputs to replies."""

import time
import uuid
from array import array
from asyncio import to_thread
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from vllm import SamplingParams
from vllm.exceptions import VLLMClientError
from vllm.inputs import tokens_input
from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams
from vllm.v1.engine.async_llm import AsyncLLM
from vllm.v1.engine.exceptions import EngineDeadError, EngineGenerateError

from pipeline.core.engine import FinishReason, Reply, Request
from pipeline.core.errors import EngineError, Problem
from pipeline.core.prompts import Constraint, Message
from pipeline.engines.vllm.chat_tokenizer import ChatTokenizer
from pipeline.engines.vllm.control_tokens import without_breaks
from pipeline.engines.vllm.thinking import ThinkingParser

# vLLM's other finish reasons (abort, error) become abort.
_FINISH_REASONS: dict[str | None, FinishReason] = {"stop": "stop", "length": "length"}


class VllmEngine:
    """One `AsyncLLM` in this process. Use it from one event loop.

    Temperature and seed are the only sampling parameters. Of a model's generation_config.json only
    the end tokens are used, not its sampling parameters. `context_tokens` is the limit of prompt
    and answer together, with the tokens reserved for thinking subtracted: `thinking_tokens` where
    there is no ThinkingParser to enforce them.
    """

    def __init__(
        self,
        name: str,
        llm: AsyncLLM,
        chat_tokenizer: ChatTokenizer,
        thinking: ThinkingParser | None,
        thinking_tokens: int,
    ) -> None:
        self.name = name
        self.llm = llm
        self._chat_tokenizer = chat_tokenizer
        self._thinking = thinking
        self._reserved_tokens = thinking.reserved_tokens if thinking else thinking_tokens
        self.context_tokens: int = llm.model_config.max_model_len - self._reserved_tokens

    @property
    def block_tokens(self) -> int:
        """The block size of the prefix cache, which holds whole blocks only."""
        return int(self.llm.vllm_config.cache_config.block_size)

    async def tokens(self, messages: Sequence[Message]) -> "array[int]":
        """The token ids of the whole prompt, as `generate` sends it."""
        return await self._chat_tokenizer.token_ids(messages)

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        """The tokens of the whole prompt, the chat template's own included."""
        return len(await self.tokens(messages))

    async def close(self) -> None:
        """End the engine's processes, and free the GPU."""
        await to_thread(self.llm.shutdown)

    async def generate(self, request: Request) -> Reply:
        """One reply; if vLLM refuses the request, a Reply with finish_reason abort.

        Problem: context_overflow where prompt and reply budget exceed the context; nothing is sent
        then. Raises EngineError where vLLM's engine process is dead.
        """
        started = time.perf_counter()
        prompt = await self.tokens(request.messages)
        if len(prompt) + request.max_reply_tokens > self.context_tokens:
            return _failed(prompt, started, "context_overflow")
        try:
            output = await self._output(prompt, request)
        except EngineDeadError:
            raise EngineError(f"{self.name}: vLLM's engine process is dead") from None
        except (VLLMClientError, EngineGenerateError, ValueError):
            return _failed(prompt, started)  # the engine still serves other requests
        answer = self._answer(output.outputs[0], request)
        return replace(
            answer,
            prompt_tokens=len(prompt),
            cached_tokens=output.num_cached_tokens or 0,
            reply_tokens=len(output.outputs[0].token_ids),
            seconds=time.perf_counter() - started,
        )

    def _answer(self, completion: Any, request: Request) -> Reply:
        """The text and finish_reason of a completion, with thinking and answer separated.

        vLLM has one limit for both together. If the thinking used less than its budget, the answer
        may exceed its own, and is cut there. Without a ThinkingParser the text has both, with the
        mark of thinking that the prompt ends with, unless a constraint held from the first token.
        """
        finish_reason = _FINISH_REASONS.get(completion.finish_reason, "abort")
        mark = "" if request.constraint else self._chat_tokenizer.opened_thinking
        thinking, text = None, mark + completion.text
        if self._thinking:
            thinking, ids = self._thinking.split(completion.token_ids)
            if len(ids) > request.max_reply_tokens:
                ids, finish_reason = ids[: request.max_reply_tokens], "length"
            text = self._thinking.text(ids).lstrip()
        if self._chat_tokenizer.is_breaking:
            thinking, text = thinking and without_breaks(thinking), without_breaks(text)
        return Reply(text=text, thinking=thinking, finish_reason=finish_reason)

    async def _output(self, prompt: "array[int]", request: Request) -> Any:
        """vLLM's last RequestOutput, which has the whole reply. Cancelling this coroutine aborts
        the request in the engine."""
        outputs = self.llm.generate(
            tokens_input(list(prompt)),
            self._sampling(request),
            uuid.uuid4().hex,
            **(self._thinking.generate_arguments if self._thinking else {}),
        )
        return [output async for output in outputs][-1]

    def _sampling(self, request: Request) -> SamplingParams:
        return SamplingParams(
            max_tokens=request.max_reply_tokens + self._reserved_tokens,
            temperature=request.temperature,
            seed=request.seed if request.temperature != 0 else None,
            structured_outputs=_structured_outputs(request.constraint),
            thinking_token_budget=self._thinking.budget if self._thinking else None,
            skip_special_tokens=not self._chat_tokenizer.marks_thinking,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )


def _failed(prompt: Sequence[int], started: float, problem: Problem | None = None) -> Reply:
    return Reply(
        text="",
        finish_reason="abort",
        prompt_tokens=len(prompt),
        seconds=time.perf_counter() - started,
        problem=problem,
    )


def _structured_outputs(constraint: Constraint | None) -> StructuredOutputsParams | None:
    if constraint is None:
        return None
    if constraint.choices:
        return StructuredOutputsParams(choice=list(constraint.choices))
    return StructuredOutputsParams(regex=constraint.regex)
