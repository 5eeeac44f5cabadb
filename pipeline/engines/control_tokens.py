"""Control tokens that a text spells, for engines that cannot have contents tokenised as text: they
are broken in what is sent, and mended in replies."""

import re
from collections.abc import Sequence

from pipeline.core.prompts import Message

_BREAK = "\u2060"  # word joiner: has no width, is no white space and is part of no control token
_NAMES = (
    "s|unk|pad|bos|eos|mask|sop|eop|eot|think|thinking|thought|reasoning|answer|tool_call|tool_response"
    "|tools|function|start_of_turn|end_of_turn|start_of_image|endoftext"
)
# Of most vocabularies: <|im_end|> and Gemma 4's <|turn>, <turn|>; DeepSeek's with full-width bars; those
# of names and <seed:think>; Llama 2's and Mistral's; Kimi's; switches of thinking.
_CONTROL = re.compile(
    r"<\|[^<>|\s]{1,64}\|?>|<[^<>|\s]{1,64}\|>|<\uff5c[^<>\uff5c]{1,64}\uff5c>"
    rf"|</?(?:\w{{1,16}}:)?(?:{_NAMES})>|<</?SYS>>|\[/?[A-Z][A-Z_]{{2,30}}\]|\[gMASK\]"
    r"|\u25c1/?think\u25b7|/(?:no_)?think\b",
    )
_BROKEN = re.compile(rf"(?<=[<\[/\u25c1]){_BREAK}")


def broken(messages: Sequence[Message]) -> list[Message]:
    """The messages, with an invisible character after the first one of each control token."""
    return [
        {
            "role": message["role"],
            "content": _CONTROL.sub(lambda m: m[0][0] + _BREAK + m[0][1:], message["content"]),
        }
        for message in messages
    ]


def mended(text: str) -> str:
    """A reply without the characters of `broken`."""
    return _BROKEN.sub("", text)
