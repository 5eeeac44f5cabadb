"""A model's tokenizer where it lies on this machine. Asks no network; imports no vllm."""

from pathlib import Path
from typing import Any

from jinja2 import TemplateError

from pipeline.vllm_engine.tokens import ChatTokens


def chat_tokens_at_hand(model: str, settings: Any) -> ChatTokens | None:
    """That of a folder, or of a name that Hugging Face's cache holds; null where there is none,
    or nothing installed that reads it. `settings` may have a revision and a chat template."""
    try:
        from transformers import AutoTokenizer
    except ImportError:
        return None
    revision = getattr(settings, "revision", None)
    file = getattr(settings, "chat_template", None)
    try:
        tokenizer = AutoTokenizer.from_pretrained(model, revision=revision, local_files_only=True)
        template = file and Path(file).read_text(encoding="utf-8")
        values = getattr(settings, "chat_template_kwargs", {})
        tokens = ChatTokens(tokenizer, template, values)
        tokens.tokenise([{"role": "user", "content": "x"}])
    except (OSError, ValueError, KeyError, TemplateError):  # as those of models yet to be fetched
        return None
    return tokens
