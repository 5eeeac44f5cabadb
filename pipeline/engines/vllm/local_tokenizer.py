"""Load a model's tokenizer from files on this machine. Opens no connection; imports no vllm."""

from typing import Any

from jinja2 import TemplateError

from pipeline.engines.vllm.chat_tokenizer import ChatTemplate, ChatTokenizer


def local_chat_tokenizer(model: str, settings: Any) -> ChatTokenizer | None:
    """The tokenizer of a model folder, or of a model in Hugging Face's local cache.

    `settings`: of any engine; its revision and chat template are used if it has them. None if
    transformers is not installed, the model is not on this machine, or its template does not
    render.
    """
    try:
        from transformers import AutoTokenizer
    except ImportError:
        return None
    revision = getattr(settings, "revision", None)
    template = ChatTemplate(
        getattr(settings, "chat_template", None), getattr(settings, "chat_template_kwargs", {})
    )
    try:
        loaded = AutoTokenizer.from_pretrained(model, revision=revision, local_files_only=True)
        tokenizer = ChatTokenizer(loaded, template)
        tokenizer.tokenise([{"role": "user", "content": "x"}])
    except (OSError, ValueError, KeyError, TemplateError):  # also if the model is not downloaded
        return None
    return tokenizer
