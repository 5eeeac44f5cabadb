"""The calls of a trace, as lines and as JSON."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from textwrap import indent
from typing import Any

from jobs.config.options import ReadOptions
from jobs.trace.sent import Sent, SentCall
from jobs.trace.trace import Trace

_ABOUT = ("page_index", "turn", "reference_index", "attempt")


class SentCalls:
    """The calls of a trace's question and of its document's memories."""

    def __init__(self, options: ReadOptions, found: Trace) -> None:
        sent = Sent(options.warehouse, options.run, options.plugins)
        self._trace = found
        self._of_document = sent.of_document(found.question["document_id"])
        self._of_question = sent.of_question(found.question["question_id"])

    def of_memory(self, memory: str) -> list[str]:
        """The lines of the calls that made a memory."""
        return list(_lines(self._made(memory)))

    def of_method(self, method: str, repeat: int) -> list[str]:
        """The lines of the calls that a method and its raters made for the question."""
        return list(_lines(self._asked(method, repeat)))

    def as_json(self) -> dict[str, Any]:
        """The trace as JSON, with `calls` in every memory and method."""
        found = self._trace.as_json()
        for memory, tables in found["memories"].items():
            tables["calls"] = [_json(one) for one in self._made(memory)]
        for tables in found["methods"]:
            asked = self._asked(tables["method"], tables["repeat"])
            tables["calls"] = [_json(one) for one in asked]
        return found

    def _made(self, memory: str) -> list[SentCall]:
        return [one for one in self._of_document if one.call["memory"] == memory]

    def _asked(self, method: str, repeat: int) -> list[SentCall]:
        of = (method, repeat)
        return [o for o in self._of_question if (o.call["method"], o.call["repeat"]) == of]


def _json(one: SentCall) -> dict[str, Any]:
    """The columns of the call, and the messages sent for it."""
    sent = {"messages": one.messages, "settings": one.settings, "why_not": one.why_not}
    return {**one.call, **sent}


def _lines(calls: Sequence[SentCall]) -> Iterator[str]:
    for stage, own in groupby(calls, lambda one: one.call["stage"]):
        sent = list(own)
        yield f"\nCALLS OF {stage} ({len(sent)})"
        for one in sent:
            yield from (indent(line, "  ") for line in _call(one))


def _call(one: SentCall) -> Iterator[str]:
    call = one.call
    about = ", ".join(f"{name} {call[name]}" for name in _ABOUT if call[name] is not None)
    yield f"\n{call['prompt']} ({about}) to {call['engine']}, request {call['request_sha']}"
    if one.messages is None or one.settings is None:
        yield f"what was sent cannot be shown: {one.why_not}"
    else:
        yield _settings(one.settings)
        for message in one.messages:
            yield f"{message['role']}:"
            yield indent(message["content"], "  | ", lambda line: True)
    if call["thinking"]:
        yield "thinking:"
        yield indent(call["thinking"], "  | ", lambda line: True)
    yield f"reply ({call['finish_reason']}, {call['reply_tokens']} tokens):"
    yield indent(call["reply"], "  | ", lambda line: True)


def _settings(settings: Mapping[str, Any]) -> str:
    most, constraint = settings["max_reply_tokens"], settings["constraint"]
    legal = {name: value for name, value in (constraint or {}).items() if value}
    of_reply = "".join(f", constrained to {name} {value}" for name, value in legal.items())
    sampling = f"temperature {settings['temperature']:g}, seed {settings['seed']}"
    return f"{sampling}, at most {most} tokens of reply{of_reply}"
