"""Render messages with a model's chat template into token ids; load a tokenizer from files on this
machine. Imports no vllm, opens no connection."""

import asyncio
from array import array
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import TemplateError

from pipeline.core.prompts import Message
from pipeline.engines.vllm.piece_tokenizer import piece_tokenizer

_THREADS = 4  # tokenizers written in Rust release the GIL
_CACHED_TOKENS = 10_000_000  # 40 MB; cached, as a prompt is counted first and sent later

_Key = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class ChatTemplate:
    """A Jinja file to use instead of the model's own template, and variables for either."""

    file: str | None
    variables: Mapping[str, Any]

    def text(self) -> str | None:
        """The file's content; None for the model's own template. Raises OSError."""
        return Path(self.file).read_text(encoding="utf-8") if self.file else None


class ChatTokenizer:
    """Token ids of whole prompts, with an LRU cache."""

    def __init__(self, tokenizer: Any, template: ChatTemplate) -> None:
        self._tokenizer = tokenizer
        self._template_text = template.text()
        self._variables = template.variables
        self._by_pieces = piece_tokenizer(tokenizer)
        self._threads = ThreadPoolExecutor(_THREADS, "chat-tokenizer")
        self._cache: OrderedDict[_Key, array[int]] = OrderedDict()  # least recently used first
        self._num_cached_tokens = 0

    async def token_ids(self, messages: Sequence[Message]) -> "array[int]":
        """The prompt's token ids, including those of the chat template and generation prompt."""
        key = tuple((message["role"], message["content"]) for message in messages)
        if key not in self._cache:
            loop = asyncio.get_running_loop()
            ids = await loop.run_in_executor(self._threads, self.tokenise, messages)
            self._add_to_cache(key, ids)
        self._cache.move_to_end(key)
        return self._cache[key]

    def tokenise(self, messages: Sequence[Message]) -> "array[int]":
        """The prompt's token ids as in `token_ids`, computed synchronously and not cached.

        Raises ValueError or jinja2.TemplateError if there is no template or it does not render.
        """
        if self._by_pieces:
            return self._by_pieces.ids(self._rendered(messages, tokenize=False))
        return array("i", self._rendered(messages, tokenize=True, return_dict=False))

    def _rendered(self, messages: Sequence[Message], **how: bool) -> Any:
        return self._tokenizer.apply_chat_template(
            list(messages),
            chat_template=self._template_text,
            add_generation_prompt=True,
            **how,
            **self._variables,
        )

    def _add_to_cache(self, key: _Key, ids: "array[int]") -> None:
        self._num_cached_tokens += len(ids) - len(self._cache.get(key, ()))
        self._cache[key] = ids
        while self._num_cached_tokens > _CACHED_TOKENS and len(self._cache) > 1:
            self._num_cached_tokens -= len(self._cache.popitem(last=False)[1])


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
