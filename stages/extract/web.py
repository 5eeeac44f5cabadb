"""Text of web pages (HTML, XHTML), in any encoding, as Markdown, without what is on every page of a
site: navigation, heads and feet, notices of cookies.

That is known by the element, its role, its class or id, or in that a block is nothing but links.
"""

import codecs
import re
from collections.abc import Collection, Mapping, Sequence

from stages.extract.extracted import Extracted, extractor
from stages.extract.html_markdown import LINK, LINK_END, markdown

_ELEMENTS = frozenset({"nav", "footer", "button", "select", "dialog"})
# Those that are none within these: there they are its title, its notes.
_UNLESS_INSIDE = {"header": ("article", "main"), "aside": ("article",), "form": ("article", "main")}
_ROLES = frozenset({"navigation", "banner", "contentinfo", "search", "menu", "menubar", "toolbar"})
# Words of classes and ids, and those beside which they say nothing.
_NAMES = frozenset(
    {
        *("nav", "navbar", "navigation", "menu", "breadcrumb", "breadcrumbs", "footer", "sidebar"),
        *(
            "cookie",
            "cookies",
            "consent",
            "masthead",
            "topbar",
            "toolbar",
            "skip",
            "share",
            "social",
        ),
        *("newsletter", "advert", "advertisement", "ads", "promo", "pagination", "pager"),
    }
)
_HEADS = frozenset({"header", "site", "page", "global", "main", "top"})
_TITLED = frozenset({"title", "article", "entry", "post", "content", "body", "text"})
_SMALL = frozenset({"a", "li", "td", "p", "span", "h1", "h2", "h3", "h4", "h5", "h6"})
_NAMED_BY_ID = frozenset({"div", "ul", "ol", "table", "header", "aside", "form"})
_WHOLE = frozenset({"html", "body", "main", "article"})  # a class of these says how they look
_COPYRIGHT = re.compile(r"(?:©|\(c\)|copyright\b)", re.IGNORECASE)
_LONGEST_NOTICE = 200  # characters
_LINKS = re.compile(f"{LINK}[^{LINK_END}]*(?:{LINK_END}|$)")
_MOST_LEFT = 0.2  # of a block outside of its links: what has more is no navigation
_LEAST_KEPT = 0.2  # of a page's characters; a page that has fewer is made of links

# Of <meta charset>, <meta content="text/html; charset=..."> and <?xml encoding=...?>.
_DECLARED = re.compile(rb"""<[^>]{0,200}?(?:charset|encoding)\s*=\s*["']?\s*([\w.:-]{1,40})""")
_HEAD_BYTES = 4096
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"),
          (codecs.BOM_UTF16_BE, "utf-16"))  # fmt: skip
_ESCAPE = b"\x1b"  # of ISO-2022, whose bytes are all ASCII


@extractor("html", "htm", "xhtml")
def web_text(content: bytes) -> Extracted:
    """The text of a page; empty where it has none."""
    html = decoded_html(content)
    everything = markdown(html)
    kept = _without_links(markdown(html, is_skipped=_is_boilerplate).split("\n\n"))
    return Extracted(kept if len(kept) >= _LEAST_KEPT * len(everything) else everything)


def _is_boilerplate(tag: str, attrs: Mapping[str, str | None], inside: Collection[str]) -> bool:
    role = attrs.get("role") or ""
    if tag in _WHOLE or role.startswith("doc-"):
        return False
    if tag in _ELEMENTS or role in _ROLES or "hidden" in attrs:
        return True
    # Ids of sections are made from their headings.
    own_id = attrs.get("id") if tag in _NAMED_BY_ID else None
    named = f"{attrs.get('class') or ''} {own_id or ''}"
    names = {*re.findall("[a-z]+", named.lower())}
    if names & _TITLED or tag in _SMALL:
        return False
    is_head = "header" in names and names <= _HEADS and not inside
    is_out = tag in _UNLESS_INSIDE and not {*_UNLESS_INSIDE[tag]} & {*inside}
    return bool(names & _NAMES and not inside) or is_head or is_out


def _without_links(blocks: Sequence[str]) -> str:
    """The blocks that are more than links, without a notice of copyright at their end."""
    kept = [block for block in blocks if not is_links(block)]
    while kept and len(kept[-1]) <= _LONGEST_NOTICE and _COPYRIGHT.match(kept[-1]):
        kept.pop()
    return "\n\n".join(kept).replace(LINK, "").replace(LINK_END, "")


def is_links(block: str) -> bool:
    """True if a paragraph or a list is hardly more than links, and no heading."""
    rest = re.sub(r"\W", "", _LINKS.sub("", block))
    return LINK in block and block[0] != "#" and len(rest) <= _MOST_LEFT * len(block)


def decoded_html(content: bytes) -> str:
    """The text of the bytes: by their byte order mark, as UTF-8, as what the page declares, or as
    Windows-1252, the first of these that fits. A page that is UTF-8 by chance is none in practice,
    while declarations are often wrong."""
    declared = [found[1].decode("ascii", "replace") for found in
                _DECLARED.finditer(content[:_HEAD_BYTES])]  # fmt: skip
    by_mark = [name for mark, name in _MARKS if content.startswith(mark)]
    first = declared if _ESCAPE in content else []
    for name in (*by_mark, *first, "utf-8", *declared, "cp1252"):
        try:
            return _lines(content.decode(name))
        except (LookupError, UnicodeError, ValueError):
            continue
    return _lines(content.decode("latin-1"))


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
