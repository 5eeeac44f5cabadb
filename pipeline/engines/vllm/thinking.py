"""Separate a reasoning model's thinking from its answer with vLLM's reasoning parsers."""

from array import array
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

from vllm.config import VllmConfig
from vllm.reasoning import ReasoningParserManager

from pipeline.core.errors import StartError


class ThinkingParser:
    """Splits token ids into thinking and answer, and holds the settings of a thinking budget.

    `budget` is the number of tokens a model may think before each answer. `reserved_tokens` adds
    those of the markers around the thinking. `generate_arguments` go to `AsyncLLM.generate`.

    vLLM uses the same parser to decide where a constraint starts to apply. Raises StartError where
    the parser defines no marker that ends the thinking.
    """

    def __init__(
        self, config: VllmConfig, tokenizer: Any, budget: int, template_values: Mapping[str, Any]
    ) -> None:
        self.budget = budget
        markers = config.reasoning_config
        name = config.structured_outputs_config.reasoning_parser
        if markers is None or not markers.enabled:
            raise StartError(
                f"engine.args.reasoning_parser={name} defines no marker that ends the thinking, so "
                "engine.thinking_tokens cannot be enforced; name another parser"
            )
        start, end = markers.reasoning_start_token_ids, markers.reasoning_end_token_ids
        self.reserved_tokens = budget + len(start) + len(end)
        parser_arguments = {"chat_template_kwargs": dict(template_values)}
        self.generate_arguments = {"reasoning_parser_kwargs": parser_arguments}
        self._tokenizer = tokenizer
        parser_class = ReasoningParserManager.get_reasoning_parser(name)
        self._parser = parser_class(tokenizer, **parser_arguments)

    def split(self, prompt: "array[int]", reply: Sequence[int]) -> tuple[str | None, Sequence[int]]:
        """The text of the thinking without its markers, and the answer's token ids.

        The thinking is None if the prompt already ends it. The answer is empty if the reply does
        not end the thinking.
        """
        if self._parser.is_reasoning_end(list(prompt)):
            return None, reply
        lengths = range(len(reply))
        end = bisect_left(lengths, True, key=lambda n: self._parser.is_reasoning_end(reply[:n]))
        start_marker = self._parser.reasoning_start_str or ""
        end_marker = self._parser.reasoning_end_str or ""
        thinking = self.text(reply[:end]).strip()
        return thinking.removeprefix(start_marker).removesuffix(end_marker).strip(), reply[end:]

    def text(self, ids: Sequence[int]) -> str:
        """The text of token ids, without special ones such as an end of turn."""
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=True))
