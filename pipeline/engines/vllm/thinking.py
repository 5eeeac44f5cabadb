"""Separate a reasoning model's thinking from its answer with vLLM's reasoning parsers."""

from collections.abc import Mapping, Sequence
from typing import Any

from vllm.config import VllmConfig
from vllm.reasoning import ReasoningParserManager


class ThinkingParser:
    """Splits token ids into thinking and answer, and holds the settings of a thinking budget.

    `budget` is the number of tokens a model may think before each answer. `reserved_tokens` adds
    those of the markers around the thinking. `generate_arguments` go to `AsyncLLM.generate`.

    vLLM uses the same parser to decide where a constraint starts to apply. Whether a prompt
    leaves the thinking open is asked of `prompt_end` alone, the token ids after its last content:
    an earlier turn may have ended its own.
    """

    def __init__(
        self,
        config: VllmConfig,
        tokenizer: Any,
        budget: int,
        template_values: Mapping[str, Any],
        prompt_end: Sequence[int],
    ) -> None:
        self.budget = budget
        markers = config.reasoning_config
        assert markers is not None
        start, end = markers.reasoning_start_token_ids, markers.reasoning_end_token_ids
        self.reserved_tokens = budget + len(start) + len(end)
        parser_arguments = {"chat_template_kwargs": dict(template_values)}
        self._tokenizer, self._prompt_end = tokenizer, prompt_end
        name = config.structured_outputs_config.reasoning_parser
        parser_class = ReasoningParserManager.get_reasoning_parser(name)
        self._parser = parser_class(tokenizer, **parser_arguments)
        self.generate_arguments = {
            "reasoning_parser_kwargs": parser_arguments,
            "reasoning_ended": self._parser.is_reasoning_end(list(prompt_end)),
        }

    def split(self, reply: Sequence[int]) -> tuple[str | None, Sequence[int]]:
        """The text of the thinking without its markers, and the answer's token ids.

        The thinking is None if the generation prompt ends it, and the reply opens none. The answer
        is empty if the reply does not end the thinking.
        """
        is_ended = self._parser.is_reasoning_end
        lengths = range(len(reply), -1, -1)  # the last token within the thinking is found first
        open_at = (n for n in lengths if not is_ended([*self._prompt_end, *reply[:n]]))
        end = next(open_at, None)
        if end is None:
            return None, reply
        start_marker = self._parser.reasoning_start_str or ""
        end_marker = self._parser.reasoning_end_str or ""
        thinking = self.text(reply[: end + 1]).strip()
        return thinking.removeprefix(start_marker).removesuffix(end_marker).strip(), reply[
            end + 1 :
        ]

    def text(self, ids: Sequence[int]) -> str:
        """The text of token ids, without special ones such as an end of turn."""
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=True))


def can_end_thinking(config: VllmConfig) -> bool:
    """True if the reasoning parser has a marker by which vLLM can end the thinking."""
    markers = config.reasoning_config
    return markers is not None and markers.enabled
