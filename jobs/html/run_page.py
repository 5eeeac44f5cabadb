"""The HTML of a page: our script and style, and a policy (CSP) that allows no other."""

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2.environment import TemplateStream
from markupsafe import Markup

_HERE = Path(__file__).parent
_SCRIPTS = "dom address data tables pictures problems overview lists runs marks calls memory walk walk_tree attempts reading_map panes question document shortcuts main"  # noqa: E501  # in their order
_STYLES = ("base", "tables", "pictures", "question", "print")
_SELF, _NONE = "'self'", "'none'"

Chunk = tuple[str, bytes]  # its name, and JSON in gzip


def page(
    run: str, first: Iterable[Chunk], chunks: Iterable[Chunk], served: str = "", root: str = ""
) -> TemplateStream:
    """The page of a run in pieces. It opens as soon as the chunks `first` are there. `served`: by
    what ("view" or "bundle"); the page then holds no chunks, but requests them from its own address
    as data/NAME, and those of the warehouse from `root`."""
    script, style = _script(), _style()
    policy = "; ".join([
        "default-src 'none'", f"script-src {_source(script)}",
        f"style-src {_source(style)}", f"connect-src {_SELF if served else _NONE}",
        f"base-uri {_NONE}", f"form-action {_NONE}",
    ])  # fmt: skip
    made = Environment(
        loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined
    ).get_template("page.jinja").stream(
        run=run, policy=policy, served=served, root=root,
        script=Markup(script), style=Markup(style),
        first=_texts(first), chunks=_texts(chunks),
    )  # fmt: skip
    made.enable_buffering(20)
    return made


def _texts(chunks: Iterable[Chunk]) -> Iterator[tuple[str, str]]:
    for name, content in chunks:
        yield name, base64.b64encode(content).decode()


def _source(text: str) -> str:
    """The hash by which a content security policy names an inline script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _script() -> str:
    return _inlined('"use strict";\n' + _joined(_SCRIPTS.split(), "js"))


def _style() -> str:
    return _inlined(_joined(_STYLES, "css"))


def _joined(names: Iterable[str], suffix: str) -> str:
    return "\n".join((_HERE / f"{name}.{suffix}").read_text(encoding="utf-8") for name in names)


def _inlined(text: str) -> str:
    """JavaScript or CSS as it may be written within an element. Line ends are line feeds, as a
    browser hashes them; text that HTML would read as a tag or comment is in a string or a pattern
    of JavaScript, where it can begin with an escape."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return re.sub(r"<(?=!--|/?(?:script|style)\b)", r"\\x3c", text, flags=re.IGNORECASE)
