"""Import vLLM and load a model; every failure becomes one line for the user."""

import struct
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.core.errors import StartError, UsageError
from pipeline.core.prompts import Message
from pipeline.core.registry import hint
from pipeline.engines.vllm.chat_tokenizer import ChatTemplate, ChatTokenizer
from pipeline.engines.vllm.cpu_build import is_cpu_build, use_all_cores, with_cpu_defaults
from pipeline.engines.vllm.startup_errors import explained, one_line, vllm_errors_in_file

if TYPE_CHECKING:
    from pipeline.engines.vllm.async_llm import VllmEngine

# What vLLM, transformers and torch raise where a model cannot be loaded.
_LOAD_ERRORS = (
    OSError, ValueError, RuntimeError, TypeError, LookupError, AssertionError, ImportError,
    struct.error,
)  # fmt: skip
_TEST_CHAT: tuple[Message, ...] = ({"role": "user", "content": "x"},)


def load_engine(
    arguments: Mapping[str, Any], template: ChatTemplate, thinking_tokens: int
) -> "VllmEngine":
    """The engine, ready for requests; `arguments` are those of vLLM's AsyncEngineArgs.

    Blocks until the model is loaded. Raises UsageError where another setting would help, StartError
    for all other failures.
    """
    with vllm_errors_in_file() as log:
        try:
            return _load(arguments, template, thinking_tokens)
        except _LOAD_ERRORS as error:
            cause, advice = explained(error, log)
            line = f"engine.model={arguments['model']} cannot start: {cause}"
            raise (UsageError(f"{line}; {advice}") if advice else StartError(line)) from None


def _load(
    arguments: Mapping[str, Any], template: ChatTemplate, thinking_tokens: int
) -> "VllmEngine":
    if is_cpu_build():
        use_all_cores()
        arguments = with_cpu_defaults(arguments)
    engine_args = _engine_args(arguments)
    from vllm.tokenizers import cached_tokenizer_from_config
    from vllm.v1.engine.async_llm import AsyncLLM

    from pipeline.engines.vllm.async_llm import VllmEngine
    from pipeline.engines.vllm.thinking import ThinkingParser, can_end_thinking

    config = engine_args.create_engine_config()
    # Checked before the weights are loaded: a wrong chat template or parser fails in seconds.
    tokenizer = cached_tokenizer_from_config(config.model_config)
    chat_tokenizer = _chat_tokenizer(tokenizer, template, arguments["model"])
    thinking = (
        ThinkingParser(
            config, tokenizer, thinking_tokens, template.variables, chat_tokenizer.prompt_end
        )
        if thinking_tokens and can_end_thinking(config)
        else None
    )
    llm = AsyncLLM.from_vllm_config(config, disable_log_stats=engine_args.disable_log_stats)
    return VllmEngine(_engine_name(arguments), llm, chat_tokenizer, thinking, thinking_tokens)


def _chat_tokenizer(tokenizer: Any, template: ChatTemplate, model: str) -> ChatTokenizer:
    """The chat tokenizer. Raises StartError where there is no chat template that renders,
    UsageError for keys that the tokenizer ignores."""
    try:
        chat_tokenizer = ChatTokenizer(tokenizer, template)
    except StartError as error:
        raise StartError(f"engine.model={model}: {error}") from None
    ignored = [f"chat_template_kwargs.{name}" for name in _ignored(tokenizer, template.variables)]
    if template.file and _has_own_template(tokenizer):
        ignored = ["chat_template", *ignored]
    if ignored:
        raise UsageError(
            f"engine.{ignored[0]}: vLLM's own tokenizer of engine.model={model} ignores it; remove "
            "it, or set engine.args.tokenizer_mode=hf"
        )
    return chat_tokenizer


def _has_own_template(tokenizer: Any) -> bool:
    """True for Mistral's and DeepSeek's tokenizers in vLLM, which render chats by own code."""
    other = tokenizer.apply_chat_template(list(_TEST_CHAT), chat_template="{{ 1 }}", tokenize=False)
    return bool(other != "1")


def _ignored(tokenizer: Any, variables: Mapping[str, Any]) -> list[str]:
    """The variables that Mistral's tokenizer leaves out."""
    if not getattr(tokenizer, "IS_MISTRAL_TOKENIZER", False):
        return []
    used = {"reasoning_effort"} if tokenizer.version >= 15 else set()
    return [name for name in variables if name not in used]


def _engine_name(arguments: Mapping[str, Any]) -> str:
    """The engine's name in calls and ratings: the model's name, or a local model's folder."""
    path, revision = Path(arguments["model"]), arguments["revision"]
    model = path.resolve().name if path.exists() else arguments["model"]
    return f"vllm:{model}" + (f"@{revision}" if revision else "")


def _engine_args(arguments: Mapping[str, Any]) -> Any:
    """vLLM's AsyncEngineArgs. Raises UsageError for an argument unknown to vLLM, StartError where
    vLLM cannot be imported."""
    try:
        from vllm.engine.arg_utils import AsyncEngineArgs
    except ImportError as error:
        raise StartError(
            f"engine=vllm cannot be imported ({one_line(error)}); install the extra: "
            "pip install 'gistmill[vllm]'"
        ) from None
    known = [field.name for field in fields(AsyncEngineArgs)]
    for key in arguments:
        if key not in known:
            raise UsageError(f"engine.args.{key}: vLLM has no such argument; {hint(key, known)}")
    return AsyncEngineArgs(**arguments)
