"""Read a reply that is JSON: the items of its list, or its objects, wherever they stand in it.

Prose and code fences around them, line breaks within strings and a comma after the last item are
accepted; anything else that is no JSON is not read.
"""

import json
import re
from typing import Any

# `[1]` is a footnote more often than a list; no list asked for holds numbers.
_LIST = re.compile(r"\[\s*(?=[\"{\[\]])")
_AFTER_ITEM = re.compile(r"\s*(?:,\s*(?P<end>\]?)|(?P<last>\])|\Z)")
_OBJECT = re.compile(r"\{[^{}]*\}")
_DECODER = json.JSONDecoder(strict=False)  # line breaks within strings


def list_items(reply: str, is_cut: bool) -> list[Any] | None:
    """The items of the list in a reply; None without one, or with two that differ.

    A list that the end of the reply cuts off has its whole items up to there, and is None without
    any. So has one in a cut reply (`is_cut`) up to what is no JSON; in any other reply it is None.
    """
    read: list[Any] | None = None
    position = 0
    while found := _LIST.search(reply, position):
        items, position = _items(reply, found.end(), is_cut)
        if items is None or (read is not None and items != read):
            return None
        read = items
    return read


def objects(reply: str) -> tuple[list[dict[str, Any]], str]:
    """The innermost objects of a reply, and the reply without them."""
    found = [_decoded(text, 0)[0] for text in _OBJECT.findall(reply)]
    return [value for value in found if isinstance(value, dict)], _OBJECT.sub(" ", reply)


def _items(reply: str, start: int, is_cut: bool) -> tuple[list[Any] | None, int]:
    """The items from `start`, after the bracket, and where the list ends; None if unreadable."""
    items: list[Any] = []
    if reply.startswith("]", start):
        return items, start + 1
    while True:
        value, end = _decoded(reply, start)
        after = _AFTER_ITEM.match(reply, end) if end > start else None
        if after is None:
            is_end = is_cut or "]" not in reply[start:]
            return (items or None) if is_end else None, len(reply)
        items.append(value)
        if after["end"] or after["last"] or after.end() == len(reply):
            return items, after.end()
        start = after.end()


def _decoded(reply: str, start: int) -> tuple[Any, int]:
    """The JSON value at `start` and its end, which is `start` where there is none."""
    try:
        return _DECODER.raw_decode(reply, start)
    except (ValueError, RecursionError):  # also numbers of thousands of digits, and deep nesting
        return None, start
