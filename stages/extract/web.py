"""Text of web pages (HTML, XHTML), in any encoding, as Markdown, without what is on every page of a
site: navigation, heads and feet, notices of cookies.

That is known by the element, its role, its class or id, or in that a block is nothing but links.
"""

import re
from collections.abc import Sequence
from typing import Any

from stages.extract.extracted import Extracted, UnreadableError, extractor
from stages.extract.html_markdown import LINK, LINK_END, html_tree, markdown, without_link_marks
from stages.text.encodings import Decoded, decoded

_ELEMENTS = frozenset({"nav", "footer", "button", "select", "dialog"})
# Those that are none within these: there they are its title, its notes.
_UNLESS_INSIDE = {"header": ("article", "main"), "aside": ("article",), "form": ("article", "main")}
_ROLES = frozenset({"navigation", "banner", "contentinfo", "search", "menu", "menubar", "toolbar"})
# Words of classes and ids, and those beside which they say nothing.
_NAMES = frozenset({
    "nav", "navbar", "navigation", "menu", "breadcrumb", "breadcrumbs", "footer", "sidebar",
    "cookie", "cookies", "consent", "masthead", "topbar", "toolbar", "skip", "share", "social",
    "newsletter", "advert", "advertisement", "ads", "promo", "pagination", "pager",
})  # fmt: skip
_HEADS = frozenset({"header", "site", "page", "global", "main", "top"})
_TITLED = frozenset({"title", "article", "entry", "post", "content", "body", "text"})
_SMALL = frozenset({"a", "li", "td", "p", "span", "h1", "h2", "h3", "h4", "h5", "h6"})
_NAMED_BY_ID = frozenset({"div", "ul", "ol", "table", "header", "aside", "form"})
_MAIN = ("article", "main")
_WHOLE = frozenset({"html", "body", "main", "article"})  # a class of these says how they look
_COPYRIGHT = re.compile(r"(?:©|\(c\)|copyright\b)", re.IGNORECASE)
_LONGEST_NOTICE = 200  # characters
_LINKS = re.compile(f"{LINK}[^{LINK_END}]*(?:{LINK_END}|$)")
_MOST_LEFT = 0.2  # of a block outside of its links: what has more is no navigation
_LEAST_KEPT = 0.2  # of a page's characters; a page that has fewer is made of links


@extractor("html", "htm", "xhtml")
def web_text(content: bytes) -> Extracted:
    """The text of a page; empty where it has none."""
    read = read_html(content)
    everything = markdown(html_tree(read.text))
    for is_left_out in (_is_boilerplate, lambda element: False):
        root = html_tree(read.text)
        for element in [*root.iter()]:
            if element.getparent() is not None and is_left_out(element):
                element.drop_tree()
        mark_links(root)
        kept = _without_links(markdown(root).split("\n\n"))
        if len(kept) >= _LEAST_KEPT * len(everything):
            return Extracted(kept, note=read.note)
    # A page of links, or most of it is in an element without an end.
    return Extracted(everything, note=read.note)


def mark_links(root: Any) -> None:
    """Put LINK and LINK_END around the texts of links outside of <article> and <main>."""
    for link in root.iter("a"):
        if link.text_content().strip() and next(link.iterancestors(*_MAIN), None) is None:
            link.text, link.tail = LINK + (link.text or ""), LINK_END + (link.tail or "")


def _is_boilerplate(element: Any) -> bool:
    tag, role = element.tag, element.get("role") or ""
    if tag in _WHOLE or role.startswith("doc-"):
        return False
    if tag in _ELEMENTS or role in _ROLES or element.get("hidden") is not None:
        return True
    inside = {ancestor.tag for ancestor in element.iterancestors(*_MAIN)}
    # Ids of sections are made from their headings.
    own_id = element.get("id") if tag in _NAMED_BY_ID else None
    names = {*re.findall("[a-z]+", f"{element.get('class') or ''} {own_id or ''}".lower())}
    if names & _TITLED or tag in _SMALL:
        return False
    is_head = "header" in names and names <= _HEADS and not inside
    is_out = tag in _UNLESS_INSIDE and not {*_UNLESS_INSIDE[tag]} & inside
    return bool(names & _NAMES and not inside) or is_head or is_out


def _without_links(blocks: Sequence[str]) -> str:
    """The blocks that are more than links, without a notice of copyright at their end."""
    kept = [block for block in blocks if not is_links(block)]
    while kept and len(kept[-1]) <= _LONGEST_NOTICE and _COPYRIGHT.match(kept[-1]):
        kept.pop()
    return without_link_marks("\n\n".join(kept))


def is_links(block: str) -> bool:
    """True if a paragraph or a list is hardly more than links, and no heading."""
    rest = re.sub(r"\W", "", _LINKS.sub("", block))
    return LINK in block and block[0] != "#" and len(rest) <= _MOST_LEFT * len(block)


def read_html(content: bytes) -> Decoded:
    """The page as it is written. Raises UnreadableError where it is in no encoding."""
    try:
        return decoded(content)
    except UnicodeError:
        raise UnreadableError("text of no known encoding; save it as UTF-8 or delete it") from None
