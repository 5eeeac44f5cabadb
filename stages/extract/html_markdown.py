"""Markdown of HTML: lxml parses the page, html-to-markdown writes headings, lists and tables.

In between, the tree is reduced to the elements that shape the text.
"""

import re
from typing import Any

from stages.extract.extracted import SOFT_HYPHEN, UnreadableError
from stages.text.article_text import without_marked_sections

_TEXT = "\ufdd0"  # around the text of a line, so that nothing in it is Markdown syntax
_LIST = "\ufdd1"  # in a paragraph before a list; like _TEXT, no character of any text
_BACKSLASH = "\ufdd2"  # in place of a backslash, which would be escaped
_WORDS = re.compile(r"\S(?:.*\S)?")
_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufdd0-\ufdd2\ufffe\uffff]")
_HIDDEN = ("script", "style", "title", "template", "noscript", "svg")
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_CELLS = ("tr", "td", "th")
_KEPT = {"html", "body", "div", "p", "br", "ul", "ol", "li", "table", *_CELLS, *HEADINGS}
_BLOCKS = (
    *("address", "article", "aside", "blockquote", "caption", "center", "dd", "details", "dl"),
    *("dt", "fieldset", "figcaption", "figure", "footer", "form", "header", "hr", "main", "nav"),
    *("pre", "section", "summary"),
)
_PRE = re.compile(r"<pre\b.*?(?:</pre\b|\Z)", re.DOTALL | re.IGNORECASE)
_TAG_OR_LINE_END = re.compile(r"(<[^<>]*>)|\n")
_TOO_DEEP = "//*[count(ancestor::*) > 900]"  # html-to-markdown leaves out what is below 1,000
_LONGEST_CELL = 1000  # characters: a table with longer ones is for the page's layout
_NUMBERS = ("start", "colspan", "rowspan")  # attributes that are kept
_ITEM = re.compile(r" *(?:-|\d+\.) ")  # text that looks like an item has _TEXT before it
_BARE = re.compile(r" *(?:(?:-|\d+\.) *)+|#+")


def html_tree(html: str) -> Any:
    """The root element of a page, without invisible elements; in <pre>, line ends become <br>."""
    import lxml.html
    from lxml import etree

    html = _PRE.sub(lambda pre: _TAG_OR_LINE_END.sub(lambda m: m[1] or "<br>", pre[0]), html)
    source = _NOT_IN_XML.sub("", without_marked_sections(html))
    parser = lxml.html.HTMLParser(
        encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True
    )
    try:
        root = lxml.html.document_fromstring(source.encode(), parser=parser)
    except etree.ParserError:  # empty
        return lxml.html.Element("html")
    etree.strip_elements(root, *_HIDDEN, with_tail=False)
    return root


def markdown(root: Any) -> str:
    """The text of the tree, with blank lines between paragraphs; changes the tree. Raises
    UnreadableError where elements are nested too deep."""
    import html_to_markdown
    from lxml import etree

    _make_plain(etree, root)
    if root.xpath(_TOO_DEEP):
        raise UnreadableError("over 900 elements are within each other; fix or delete it")
    options = html_to_markdown.ConversionOptions(
        bullets="-", compact_tables=True, autolinks=False, extract_metadata=False,
        preprocessing=html_to_markdown.PreprocessingOptions(enabled=False),
    )  # fmt: skip
    plain = etree.tostring(root, encoding="unicode", method="html")
    return _with_whole_lists(html_to_markdown.convert(plain, options).content or "")


def _make_plain(etree: Any, root: Any) -> None:
    """Keep only elements that shape the text, and only the attributes of a list's start and a
    cell's spans; white space becomes one space, as in a browser."""
    for element in [*root.iter("caption")]:
        if (table := element.getparent()) is not None and table.getparent() is not None:
            table.addprevious(element)
    etree.strip_tags(root, *{e.tag for e in root.iter()} - {*_KEPT, *_BLOCKS})
    layout = {None, *filter(_is_layout, root.iter("table"))}
    for element in [*root.iter(*_BLOCKS, "table", *_CELLS)]:
        table = element if element.tag == "table" else next(element.iterancestors("table"), None)
        if element.tag in _BLOCKS or table in layout:
            element.tag = "div"
    for element in [*root.iter("ul", "ol")]:
        if next(element.iterancestors("ul", "ol", "td", "th"), None) is None:
            begin = etree.Element("p")
            begin.text = _LIST
            element.addprevious(begin)
    for element in root.iter():
        for name, value in element.attrib.items():
            if name not in _NUMBERS or not re.fullmatch("[0-9]{1,4}", value):
                del element.attrib[name]
        element.text, element.tail = _plain(element.text), _plain(element.tail)


def _is_layout(table: Any) -> bool:
    """True for a table of one row or column, or with a table, a heading or a long text in a
    cell; its cells become paragraphs."""
    if next(table.iterdescendants("table", *HEADINGS), None) is not None:
        return True
    rows = [[" ".join(cell.itertext()).strip() for cell in row.iter("td", "th")]
            for row in table.iter("tr")]  # fmt: skip
    filled = [row for row in rows if any(row)]
    longest = max((len(cell) for row in filled for cell in row), default=0)
    return len(filled) < 2 or max(map(len, filled)) < 2 or longest > _LONGEST_CELL


def _plain(text: str | None) -> str:
    text = (text or "").replace(SOFT_HYPHEN, "").replace("\\", _BACKSLASH)
    return _WORDS.sub(rf"{_TEXT}\g<0>{_TEXT}", re.sub(r"\s+", " ", text))


def _with_whole_lists(text: str) -> str:
    """The text without blank lines within lists and without empty items and headings."""
    lines = [line.rstrip() for line in text.split("\n")]
    written = "\n".join(line for line in lines if not _BARE.fullmatch(line))
    blocks: list[str] = []
    is_list = False
    for block in re.split(r"\n{2,}", written.strip("\n")):
        is_item = bool(_ITEM.match(block))
        if is_list and (is_item or block.startswith(" ")):
            blocks[-1] += f"\n{block}"
            continue
        blocks += [block] if block != f"{_TEXT}{_LIST}{_TEXT}" else []
        is_list = is_item
    return "\n\n".join(blocks).replace(_TEXT, "").replace(_LIST, "").replace(_BACKSLASH, "\\")
