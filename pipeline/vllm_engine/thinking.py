"""What a reasoning model thinks, told from what it answers, by vLLM's own reasoning parsers."""

from array import array
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

from vllm.config import VllmConfig
from vllm.reasoning import ReasoningParserManager

from pipeline.errors import StartError


class Thinking:
    """`budget` tokens of thinking before each answer; `room` counts the marks around it too.

    Where the thinking ends is asked of the same parser, and about the same tokens, that tells the
    engine from where a constraint holds. Raises StartError where the parser has no such marks.
    """

    def __init__(
        self, config: VllmConfig, tokenizer: Any, budget: int, template_values: Mapping[str, Any]
    ) -> None:
        self.budget = budget
        marks = config.reasoning_config
        name = config.structured_outputs_config.reasoning_parser
        if marks is None or not marks.enabled:
            raise StartError(
                f"engine.args.reasoning_parser={name} has no marks that end the thinking, so "
                "engine.thinking_tokens cannot be kept; name another parser"
            )
        start, end = marks.reasoning_start_token_ids, marks.reasoning_end_token_ids
        self.room = budget + len(start) + len(end)
        self.told = {"reasoning_parser_kwargs": {"chat_template_kwargs": dict(template_values)}}
        self._tokenizer = tokenizer
        parser = ReasoningParserManager.get_reasoning_parser(name)
        self._parser = parser(tokenizer, chat_template_kwargs=dict(template_values))

    def split(self, prompt: "array[int]", reply: Sequence[int]) -> tuple[str | None, Sequence[int]]:
        """The thinking, null where the prompt leaves no place for it, and the answer's token ids.

        No answer where the thinking did not end.
        """
        if self._parser.is_reasoning_end(list(prompt)):
            return None, reply
        lengths = range(len(reply))
        ends = bisect_left(lengths, True, key=lambda n: self._parser.is_reasoning_end(reply[:n]))
        marks = (self._parser.reasoning_start_str or "", self._parser.reasoning_end_str or "")
        thinking = self.text(reply[:ends]).strip()
        return thinking.removeprefix(marks[0]).removesuffix(marks[1]).strip(), reply[ends:]

    def text(self, ids: Sequence[int]) -> str:
        """Without the tokens that end a turn."""
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=True))
