"""Plain text of an article that is HTML, or was HTML before its tags were removed.

In the result, blank lines separate paragraphs; a hard-wrapped paragraph is joined to one line.
"""

import re
from html.parser import HTMLParser

_IS_HTML = re.compile(r"<(?:!doctype|html|head|body|div|p|br|h[1-6])\b", re.IGNORECASE)
_BLANK_LINES = re.compile(r"\n\s*\n")
# Browsers skip a marked section; some make HTMLParser raise. Where the section has no end, only
# its opening sign is left out. What ends a comment for Internet Explorer is left to the parser.
_MARKED_SECTION = re.compile(r"<!\[(?!endif\]-->)(?:[^<>]*>)?")
_DROPPED = frozenset({"script", "style", "title"})
_BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "div", "dl",
    "dt", "figcaption", "figure", "footer", "h1", "h2", "h3", "h4", "h5", "h6", "head", "header",
    "hr", "html", "li", "main", "nav", "ol", "p", "pre", "section", "table", "ul",
})  # fmt: skip
_BREAKS = {**dict.fromkeys(_BLOCKS, "\n\n"), "br": "\n", "tr": "\n", "td": " ", "th": " "}


def article_text(article: str) -> str:
    """The paragraphs of `article`, each on one line, blank lines between them. In HTML, a <br> is a
    line break, two of them end the paragraph (as in QuALITY v1.0.1); <pre> keeps its lines; script,
    style, title and comments are left out."""
    if _IS_HTML.search(article):
        parser = _HtmlText()
        parser.feed(_MARKED_SECTION.sub("", article))
        parser.close()
        return parser.text()
    paragraphs = (" ".join(part.split()) for part in _BLANK_LINES.split(article))
    return "\n\n".join(filter(None, paragraphs))


class _HtmlText(HTMLParser):
    """Collects the text of HTML; white space becomes one space, as in a browser."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._parts: list[str] = []
        self._dropping = self._pre = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._dropping += tag in _DROPPED
        self._pre += tag == "pre"
        self._parts.append(_BREAKS.get(tag, ""))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._parts.append(_BREAKS.get(tag, ""))

    def handle_endtag(self, tag: str) -> None:
        self._dropping = max(0, self._dropping - (tag in _DROPPED))
        self._pre = max(0, self._pre - (tag == "pre"))
        self._parts.append("\n\n" if tag in _BLOCKS else "")

    def handle_data(self, data: str) -> None:
        if not self._dropping:
            self._parts.append(data if self._pre else re.sub(r"\s+", " ", data))

    def text(self) -> str:
        """The collected text. Inline tags add nothing, so they neither join nor split words."""
        lines = (" ".join(line.split()) for line in "".join(self._parts).split("\n"))
        return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
