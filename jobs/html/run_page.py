"""The HTML of a page: our script and style, the table library's, and a policy (CSP) that allows no
other script."""

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2.environment import TemplateStream
from markupsafe import Markup

from pipeline.core.errors import UsageError

_HERE = Path(__file__).parent
_SCRIPTS = (  # in the order in which they stand in the page
    "dom", "data", "tables", "pictures", "overview", "lists", "marks", "calls", "memory", "walk",
    "question", "main",
)  # fmt: skip
# DataTables and jQuery, as the package itables carries them for pages without a network.
_BUNDLE = "itables/html/dt_bundle"
_DATA_TABLE = re.compile(r"export\s*\{[^}]*?([\w$]+) as default\b")
_SELF, _NONE = "'self'", "'none'"

Chunk = tuple[str, bytes]  # its name, and JSON in gzip


def page(run: str, first: Iterable[Chunk], chunks: Iterable[Chunk], served: bool) -> TemplateStream:
    """The page of a run in pieces. It opens as soon as the chunks `first` are there. `served`: the
    page holds no chunks, but requests them from its own address as data/NAME."""
    script, style, library = _script(), _style(), _library()
    policy = "; ".join([
        "default-src 'none'", f"script-src {_source(script)} {_source(library)}",
        f"style-src {_source(style)}", "img-src data:",
        f"connect-src {_SELF if served else _NONE}", f"base-uri {_NONE}", f"form-action {_NONE}",
    ])  # fmt: skip
    made = Environment(
        loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined
    ).get_template("page.jinja").stream(
        run=run, policy=policy, served=served,
        script=Markup(script), style=Markup(style), library=Markup(library),
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
    parts = [(_HERE / f"{name}.js").read_text(encoding="utf-8") for name in _SCRIPTS]
    return _inlined('"use strict";\n' + "\n".join(parts))


def _style() -> str:
    own = (_HERE / "style.css").read_text(encoding="utf-8")
    return _inlined(f"{_bundled('.css')}\n{own}")


def _library() -> str:
    """The table library as a module that starts our script once it is loaded. Of its exports we use
    the class DataTable, the default one."""
    bundle = _bundled(".js")
    exported = _DATA_TABLE.search(bundle)
    if exported is None:
        raise UsageError("itables carries another DataTables than gistmill knows; install 2.9")
    return _inlined(f"{bundle}\nstart({exported[1]});")


@cache
def _bundled(suffix: str) -> str:
    """A file of the table library. Raises UsageError if it is not installed."""
    try:
        file = Path(str(distribution("itables").locate_file(_BUNDLE + suffix)))
        return file.read_text(encoding="utf-8")
    except (PackageNotFoundError, FileNotFoundError):
        raise UsageError(
            "a page needs itables, for its tables; pip install 'itables>=2.9'"
        ) from None


def _inlined(text: str) -> str:
    """JavaScript or CSS as it may be written within an element. Line ends are line feeds, as a
    browser hashes them; text that HTML would read as a tag or comment is in a string or a pattern
    of JavaScript, where it can begin with an escape."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return re.sub(r"<(?=!--|/?(?:script|style)\b)", r"\\x3c", text, flags=re.IGNORECASE)
