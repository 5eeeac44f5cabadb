"""Chunks of a page's data: {"content": ...} as JSON in gzip. In packed ones long texts are lists of
lines, each of which is stored once, as the prompts of a document repeat its pages and gists."""

import gzip
import json
from collections.abc import Mapping
from typing import Any

from jobs.output.print_tables import json_value

_LONG = 160  # characters; shorter texts stay as they are
_LINES = "$"  # a long text is {"$": [numbers of its lines]}; no other list is called so


def compressed_chunk(chunk: Mapping[str, Any]) -> bytes:
    """The chunk as JSON in gzip; equal chunks give equal bytes."""
    text = json.dumps(json_value(chunk), default=str, allow_nan=False, separators=(",", ":"))
    return gzip.compress(text.encode(), compresslevel=6, mtime=0)


def with_line_numbers(content: Mapping[str, Any]) -> dict[str, Any]:
    """A chunk of the content, with long texts as numbers of lines, and of the lines themselves."""
    lines: dict[str, int] = {}
    return {"content": _packed(content, lines), "lines": list(lines)}


def _packed(value: Any, lines: dict[str, int]) -> Any:
    if isinstance(value, str) and len(value) > _LONG:
        return {_LINES: [lines.setdefault(line, len(lines)) for line in value.split("\n")]}
    if isinstance(value, Mapping):
        return {key: _packed(inner, lines) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_packed(inner, lines) for inner in value]
    return value
