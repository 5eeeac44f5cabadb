"""Clean an engine's reply: thinking apart from the text, and nothing that a file cannot hold."""

import re
from dataclasses import replace

from pipeline.core.engine import Reply

_THINKING_TAG = re.compile("</?think>")
_HALF = re.compile(r"[\ud800-\udfff]")


def storable(reply: Reply) -> Reply:
    """The reply with half surrogate pairs, which no file can hold, as U+FFFD."""
    text, thinking = _HALF.sub("\ufffd", reply.text), _HALF.sub("\ufffd", reply.thinking or "")
    return replace(reply, text=text, thinking=thinking or reply.thinking)


def without_thinking(reply: Reply) -> Reply:
    """Move `<think>...</think>` from the reply's text to `thinking`.

    The text is what follows the last `</think>`, even without an opening tag, as chat templates
    write `<think>` themselves. A `<think>` after that did not end, and the text is empty.
    """
    tags = list(_THINKING_TAG.finditer(reply.text))
    if not tags:
        return reply
    end = tags[-1].end() if tags[-1][0] == "</think>" else len(reply.text)
    thoughts = [reply.thinking or "", *_THINKING_TAG.split(reply.text[:end])]
    thinking = "\n".join(thought.strip() for thought in thoughts if thought.strip())
    return replace(reply, text=reply.text[end:].strip(), thinking=thinking or None)
