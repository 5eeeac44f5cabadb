"""The HTML of a page: our script and style, a content security policy (CSP) that allows no other,
and its data: chunks, which are JSON in gzip. A long text is a list of lines, each of which a chunk
has once, as the prompts of a document repeat its pages and gists."""

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2.environment import TemplateStream
from markupsafe import Markup

from jobs.output.print_tables import json_value

_HERE = Path(__file__).parent
_SCRIPTS = (  # in their order
    "dom", "address", "data", "tables", "pictures", "problems", "overview", "lists", "runs",
    "marks", "calls", "memory", "walk", "attempts", "reading_map", "panes", "question", "document",
    "main",
)  # fmt: skip
_STYLES = ("base", "tables", "pictures", "question", "print")
_LONG = 160  # characters; shorter texts stay as they are
_LINES = "$"  # a long text is {"$": [numbers of its lines]}; no other list has this key

Chunk = tuple[str, bytes]  # its name, and JSON in gzip


def page(
    run: str, first: Iterable[Chunk] = (), chunks: Iterable[Chunk] = (), root: str | None = None
) -> TemplateStream:
    """The page of a run in pieces. It opens as soon as the chunks `first` are there. A served page
    holds no chunks, but requests its own from data/NAME, and the warehouse's from `root`."""

    def encoded(chunks: Iterable[Chunk]) -> Iterator[tuple[str, str]]:
        return ((name, base64.b64encode(content).decode()) for name, content in chunks)

    script = _inlined('"use strict";\n', _SCRIPTS, "js")
    style = _inlined("", _STYLES, "css")
    connected = "'none'" if root is None else "'self'"
    policy = "; ".join([
        "default-src 'none'", f"script-src {_source(script)}",
        f"style-src {_source(style)}", "img-src data:", f"connect-src {connected}",
        "base-uri 'none'", "form-action 'none'",
    ])  # fmt: skip
    templates = Environment(
        loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined
    )
    stream = templates.get_template("page.jinja").stream(
        run=run, policy=policy, root=root,
        script=Markup(script), style=Markup(style),
        first=encoded(first), chunks=encoded(chunks),
    )  # fmt: skip
    stream.enable_buffering(20)
    return stream


def _source(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _inlined(head: str, names: Iterable[str], suffix: str) -> str:
    """JavaScript or CSS that is safe within an element: what HTML would read as a tag or comment
    begins with an escape, as it is in a string or a pattern of JavaScript."""
    files = ((_HERE / f"{name}.{suffix}").read_text(encoding="utf-8") for name in names)
    text = head + "\n".join(files)
    return re.sub(r"<(?=!--|/?(?:script|style)\b)", r"\\x3c", text, flags=re.IGNORECASE)


def compressed_chunk(chunk: Mapping[str, Any]) -> bytes:
    """Equal chunks give equal bytes."""
    text = json.dumps(json_value(chunk), default=str, allow_nan=False, separators=(",", ":"))
    return gzip.compress(text.encode(), compresslevel=6, mtime=0)


def with_line_numbers(content: Mapping[str, Any]) -> dict[str, Any]:
    """A chunk in which long texts are numbers of lines, with the list of lines."""
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
