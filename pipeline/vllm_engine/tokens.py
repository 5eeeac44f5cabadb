"""Messages by a model's chat template, as token ids. Knows no vllm."""

import asyncio
from array import array
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pipeline.prompts import Message

_THREADS = 4  # the tokenizers work outside Python's lock
_KEPT_TOKENS = 10_000_000  # 40 MB: what was counted need not be tokenised again to be sent

_Key = tuple[tuple[str, str], ...]


class ChatTokens:
    """Token ids of whole prompts, the last ones kept."""

    def __init__(
        self, tokenizer: Any, chat_template: str | None, template_values: Mapping[str, Any]
    ) -> None:
        self._tokenizer = tokenizer
        self._template = chat_template
        self._values = template_values
        self._threads = ThreadPoolExecutor(_THREADS, "tokens")
        self._kept: OrderedDict[_Key, array[int]] = OrderedDict()
        self._num_kept = 0

    async def of(self, messages: Sequence[Message]) -> "array[int]":
        """The prompt's token ids, the template's own and the call to answer among them."""
        key = tuple((message["role"], message["content"]) for message in messages)
        if key not in self._kept:
            loop = asyncio.get_running_loop()
            self._keep(key, await loop.run_in_executor(self._threads, self.tokenise, messages))
        self._kept.move_to_end(key)
        return self._kept[key]

    def tokenise(self, messages: Sequence[Message]) -> "array[int]":
        """Raises ValueError or jinja2.TemplateError where the template is missing or refuses."""
        return array(
            "i",
            self._tokenizer.apply_chat_template(
                list(messages),
                chat_template=self._template,
                add_generation_prompt=True,
                tokenize=True,
                return_dict=False,
                **self._values,
            ),
        )

    def _keep(self, key: _Key, ids: "array[int]") -> None:
        self._num_kept += len(ids) - len(self._kept.get(key, ()))
        self._kept[key] = ids
        while self._num_kept > _KEPT_TOKENS and len(self._kept) > 1:
            self._num_kept -= len(self._kept.popitem(last=False)[1])
