"""From settings to an engine, or to one line that says why there is none."""

import asyncio
import difflib
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2

from pipeline.errors import StartError, UsageError
from pipeline.prompts import Message
from pipeline.vllm_engine.failures import cause, logged, mend, one_line
from pipeline.vllm_engine.settings import VllmSettings
from pipeline.vllm_engine.tokens import ChatTokens

if TYPE_CHECKING:
    from pipeline.vllm_engine.engine import VllmEngine

# What vLLM, transformers and torch raise where a model cannot be loaded.
_REFUSALS = (OSError, ValueError, RuntimeError, TypeError, LookupError, AssertionError, ImportError)
_PROBE: tuple[Message, ...] = ({"role": "user", "content": "x"},)


async def start(settings: VllmSettings) -> "VllmEngine":
    """The engine, loaded. Raises UsageError for an argument that vLLM has not, else StartError."""
    # In a thread, so that the worker goes on telling that it is alive.
    return await asyncio.to_thread(_start, settings)


def _start(settings: VllmSettings) -> "VllmEngine":
    with logged() as log:
        try:
            return _engine(settings)
        except _REFUSALS as error:
            why = cause(error, log)
            raise StartError(
                f"engine.model={settings.model} cannot start: {why}{mend(why)}"
            ) from None


def _engine(settings: VllmSettings) -> "VllmEngine":
    arguments = _arguments(settings)
    from vllm.tokenizers import cached_tokenizer_from_config
    from vllm.v1.engine.async_llm import AsyncLLM

    from pipeline.vllm_engine.engine import VllmEngine
    from pipeline.vllm_engine.thinking import Thinking

    config = arguments.create_engine_config()
    # What is wrong with prompts is said now, not after the weights are loaded.
    tokenizer = cached_tokenizer_from_config(config.model_config)
    tokens = _chat_tokens(settings, tokenizer)
    budget, values = settings.thinking_tokens, settings.chat_template_kwargs
    thinking = Thinking(config, tokenizer, budget, values) if budget else None
    llm = AsyncLLM.from_vllm_config(config, disable_log_stats=arguments.disable_log_stats)
    return VllmEngine(_name(settings), llm, tokens, thinking)


def _chat_tokens(settings: VllmSettings, tokenizer: Any) -> ChatTokens:
    """Raises StartError where there is no chat template, or one that cannot be rendered."""
    template = settings.chat_template and Path(settings.chat_template).read_text(encoding="utf-8")
    tokens = ChatTokens(tokenizer, template, settings.chat_template_kwargs)
    try:
        tokens.tokenise(_PROBE)
    except (ValueError, jinja2.TemplateError) as error:
        raise StartError(
            f"engine.model={settings.model} has no chat template that renders "
            f"({one_line(error)}); set engine.chat_template=FILE.jinja"
        ) from None
    return tokens


def _name(settings: VllmSettings) -> str:
    """What calls and ratings are marked with: the model, a local one by its folder's name."""
    path = Path(settings.model)
    model = path.resolve().name if path.exists() else settings.model
    return f"vllm:{model}" + (f"@{settings.revision}" if settings.revision else "")


def _arguments(settings: VllmSettings) -> Any:
    """An AsyncEngineArgs. Raises UsageError for one that vLLM has not, StartError without vLLM."""
    try:
        from vllm.engine.arg_utils import AsyncEngineArgs
    except ImportError as error:
        raise StartError(
            f"engine=vllm cannot be imported ({one_line(error)}); install the extra: "
            "pip install 'gistmill[vllm]'"
        ) from None
    values = _values(settings)
    known = [field.name for field in fields(AsyncEngineArgs)]
    for key in values:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"; did you mean {near[0]}?" if near else "; see vLLM's engine arguments"
            raise UsageError(f"engine.args.{key}: vLLM has no such argument{hint}")
    return AsyncEngineArgs(**values)


def _values(settings: VllmSettings) -> dict[str, Any]:
    """vLLM's engine arguments; those of `engine.args` win."""
    values: dict[str, Any] = {
        "model": settings.model,
        "revision": settings.revision,
        "max_num_seqs": settings.sequences,
        "enable_prefix_caching": True,
        "disable_log_stats": True,
    }
    if settings.context_tokens:
        values["max_model_len"] = settings.context_tokens
    if settings.parallel_size > 1:
        # In a Ray worker vLLM would look for a placement group; the GPUs are this worker's already.
        values["distributed_executor_backend"] = "mp"
    return {**values, **settings.args}
