"""Control tokens that a text spells, for engines that cannot have contents tokenised as text: they
get a break in what is sent, which is taken out of replies."""

import re
from collections.abc import Sequence

from pipeline.core.prompts import Message

_BREAK = "\u2060"  # word joiner: has no width, is no white space and is part of no control token
_TAGS = (
    r"s|unk|pad|bos|eos|mask|eot|sop|eop|endoftext|(?:start|end)_of_\w{1,24}|fim_\w{1,8}|file_sep"
    r"|tool_calls?|tool_response|(?:\w{1,16}:)?think|thinking|thought"
)
_BRACKETED = (
    "INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|ARGS|CALL_ID|THINK"
    "|MODEL_SETTINGS|IMG|IMG_BREAK|IMG_END|PREFIX|MIDDLE|SUFFIX|AUDIO|BEGIN_AUDIO|gMASK"
)
# <|im_end|> and the like, and Gemma 4's <|turn> and <turn|>; DeepSeek's full-width bars; <s> and
# <think>; Llama 2's and Mistral's; Kimi's; Qwen's and Nemotron's switches of thinking.
_CONTROL = re.compile(
    r"<\|[^<>|\s]{1,64}\|?>|<[^<>|\s]{1,64}\|>|<\uff5c[^<>\uff5c]{1,64}\uff5c>"
    rf"|</?(?:{_TAGS})>|<</?SYS>>|\[/?(?:{_BRACKETED})\]"
    r"|\u25c1/?think\u25b7|(?<!\S)/(?:no_)?think\b"
)
_BROKEN = re.compile(rf"(?<=[<\[/\u25c1]){_BREAK}")


def with_breaks(messages: Sequence[Message]) -> list[Message]:
    """The messages, with an invisible character after the first one of each control token."""
    return [
        {
            "role": message["role"],
            "content": _CONTROL.sub(lambda m: m[0][0] + _BREAK + m[0][1:], message["content"]),
        }
        for message in messages
    ]


def without_breaks(text: str) -> str:
    """A reply without the characters of `with_breaks`."""
    return _BROKEN.sub("", text)
