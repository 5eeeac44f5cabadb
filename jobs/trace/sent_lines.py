"""The calls of a trace, as lines."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from textwrap import indent
from typing import Any

_ABOUT = ("page_index", "turn", "reference_index", "attempt")


def sent_lines(calls: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The lines of calls (rows of `calls`), under a heading for each stage."""
    for stage, own in groupby(calls, lambda call: call["stage"]):
        sent = list(own)
        yield f"\nCALLS OF {stage} ({len(sent)})"
        for call in sent:
            yield from (indent(line, "  ") for line in _lines(call))


def _lines(call: Mapping[str, Any]) -> Iterator[str]:
    about = ", ".join(f"{name} {call[name]}" for name in _ABOUT if call[name] is not None)
    yield f"\n{call['prompt']} ({about}) to {call['engine']}, request {call['request_sha']}"
    if call["messages"] is None:
        yield "what was sent was not kept"
    else:
        yield _settings(call)
        for message in call["messages"]:
            yield f"{message['role']}:"
            yield _quoted(message["content"])
    if call["thinking"]:
        yield "thinking:"
        yield _quoted(call["thinking"])
    yield f"reply ({call['finish_reason']}, {call['reply_tokens']} tokens):"
    yield _quoted(call["reply"])


def _quoted(text: str) -> str:
    return indent(text, "  | ", lambda line: True)


def _settings(call: Mapping[str, Any]) -> str:
    legal = {name: value for name, value in (call["constraint"] or {}).items() if value}
    of_reply = "".join(f", constrained to {name} {value}" for name, value in legal.items())
    sampling = f"temperature {call['temperature']:g}, seed {call['seed']}"
    return f"{sampling}, at most {call['max_reply_tokens']} tokens of reply{of_reply}"
