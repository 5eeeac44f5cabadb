"""Markdown of HTML: lxml reads the page, html-to-markdown writes headings, lists and tables.

Between the two the tree is made plain: of its elements only those are kept that shape the text.
"""

import re
from typing import Any

from stages.extract.extracted import EXTRA, SOFT_HYPHEN, UnreadableError
from stages.text.article_text import without_marked_sections

LINK, LINK_END = "\ufdd1", "\ufdd2"  # around the text of a link; as _TEXT no characters of any text
_TEXT = "\ufdd0"  # around the text of a line, so that nothing in it has a meaning in Markdown
_LIST = "\ufdd3"  # in a paragraph before a list
_BACKSLASH = "\ufdd4"  # in place of one, which would be escaped
_WORDS = re.compile(r"\S(?:.*\S)?")
_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_HIDDEN = ("script", "style", "title", "template", "noscript", "svg")
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_CELLS = ("tr", "td", "th")
_KEPT = {"html", "body", "div", "p", "br", "ul", "ol", "li", "table", *_CELLS, *_HEADINGS}
_BLOCKS = (
    *("address", "article", "aside", "blockquote", "caption", "center", "dd", "details", "dl"),
    *("dt", "fieldset", "figcaption", "figure", "footer", "form", "header", "hr", "main", "nav"),
    *("pre", "section", "summary"),
)
_PRE = re.compile(r"<pre\b.*?(?:</pre\b|\Z)", re.DOTALL | re.IGNORECASE)
_TAG_OR_LINE_END = re.compile(r"(<[^<>]*>)|\n")
_MOST_DEPTH = 1000  # of elements within each other; what is deeper html-to-markdown leaves out
_TOO_DEEP = f"over {_MOST_DEPTH} elements are within each other; fix or delete it"
_LONGEST_CELL = 1000  # characters: a table with longer ones is for the page's layout
# Attributes that are kept, and their values: a cell may say that it spans a thousand million rows.
_NUMBERS = {"start": "[0-9]{1,9}", "colspan": "[0-9]{1,2}", "rowspan": "[0-9]{1,2}"}
_ITEM = re.compile(r" *(?:-|\d+\.) ")  # text that looks so has _TEXT before it
_BARE = re.compile(r" *(?:(?:-|\d+\.) *)+|#+")


def html_tree(html: str) -> Any:
    """The root element of a page, without what is never shown; in <pre> line ends are <br>.

    Raises UnreadableError where elements are nested too deep, or a library is not installed.
    """
    etree, html_parser, _ = _libraries()
    html = _PRE.sub(lambda pre: _TAG_OR_LINE_END.sub(lambda m: m[1] or "<br>", pre[0]), html)
    source = _NOT_IN_XML.sub("", without_marked_sections(html))
    parser = html_parser.HTMLParser(
        encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True
    )
    try:
        root = html_parser.document_fromstring(source.encode(), parser=parser)
    except etree.ParserError:  # empty
        return html_parser.Element("html")
    if any(error.type == etree.ErrorTypes.ERR_RESOURCE_LIMIT for error in parser.error_log):
        raise UnreadableError(_TOO_DEEP)
    etree.strip_elements(root, *_HIDDEN, with_tail=False)
    return root


def xml_tree(content: bytes, recover: bool = False) -> Any:
    """The root element of an XML file, none of whose entities are unfolded; None of a damaged one,
    or with `recover` what can be read of it. Raises UnreadableError where lxml is not installed."""
    etree, _, _ = _libraries()
    parser = etree.XMLParser(
        recover=recover, resolve_entities=False, no_network=True, huge_tree=True,
        remove_comments=True, remove_pis=True,
    )  # fmt: skip
    try:
        return etree.fromstring(content, parser)
    except (etree.XMLSyntaxError, ValueError, LookupError):
        return None


def xml_bytes(root: Any) -> bytes:
    etree, _, _ = _libraries()
    return bytes(etree.tostring(root))


def xml_elements(root: Any, name: str) -> list[Any]:
    """The elements of that name in any namespace, in order."""
    return [] if root is None else [*root.iter(f"{{*}}{name}")]


def markdown(root: Any) -> str:
    """The text of the tree, which is changed; blank lines between paragraphs. Raises
    UnreadableError where elements are nested too deep."""
    etree, _, writer = _libraries()
    _make_plain(etree, root)
    if _depth(etree, root) > _MOST_DEPTH:
        raise UnreadableError(_TOO_DEEP)
    options = writer.ConversionOptions(
        bullets="-", compact_tables=True, autolinks=False, extract_metadata=False,
        preprocessing=writer.PreprocessingOptions(enabled=False),
    )  # fmt: skip
    found = writer.convert(etree.tostring(root, encoding="unicode", method="html"), options)
    return _with_whole_lists(found.content or "")


def _libraries() -> tuple[Any, Any, Any]:
    try:
        import html_to_markdown
        import lxml.html
        from lxml import etree
    except ImportError:
        what = "books, Word files and web pages need lxml and html-to-markdown"
        raise UnreadableError(f"{what}; {EXTRA}") from None
    return etree, lxml.html, html_to_markdown


def _depth(etree: Any, root: Any) -> int:
    depth = deepest = 0
    for event, _ in etree.iterwalk(root, events=("start", "end")):
        depth += 1 if event == "start" else -1
        deepest = max(deepest, depth)
    return deepest


def _make_plain(etree: Any, root: Any) -> None:
    """Leave elements that shape the text, without attributes but a list's start and a cell's spans;
    white space becomes one space, as in a browser."""
    for element in [*root.iter("menu")]:
        element.tag = "ul"
    for element in [*root.iter("caption")]:
        if (table := element.getparent()) is not None and table.getparent() is not None:
            table.addprevious(element)
    etree.strip_tags(root, *{e.tag for e in root.iter()} - {*_KEPT, *_BLOCKS})
    layout = {*filter(_is_layout, root.iter("table"))}
    unwrapped = [
        element
        for element in root.iter("table", *_CELLS)
        if (element if element.tag == "table" else next(element.iterancestors("table"), None))
        in {None, *layout}
    ]
    for element in [*unwrapped, *root.iter(*_BLOCKS)]:
        element.tag = "div"
    for element in [*root.iter("ul", "ol")]:
        if next(element.iterancestors("ul", "ol", "td", "th"), None) is None:
            begin = etree.Element("p")
            begin.text = _LIST
            element.addprevious(begin)
    for element in root.iter():
        known = {key: value for key, value in element.items()
                 if key in _NUMBERS and re.fullmatch(_NUMBERS[key], value)}  # fmt: skip
        element.attrib.clear()
        element.attrib.update(known)
        element.text, element.tail = _plain(element.text), _plain(element.tail)


def _is_layout(table: Any) -> bool:
    """True for a table of one row or column, or with a table, a heading or a long text in a cell:
    its cells are paragraphs."""
    if len([*zip(range(2), table.iter("table"), strict=False)]) > 1:
        return True
    if next(table.iter(*_HEADINGS), None) is not None:
        return True
    rows = [[" ".join(cell.itertext()).strip() for cell in row.iter("td", "th")]
            for row in table.iter("tr")]  # fmt: skip
    filled = [row for row in rows if any(row)]
    longest = max((len(cell) for row in filled for cell in row), default=0)
    return len(filled) < 2 or max(map(len, filled)) < 2 or longest > _LONGEST_CELL


def _plain(text: str | None) -> str:
    text = (text or "").replace(SOFT_HYPHEN, "").replace("\\", _BACKSLASH)
    text = re.sub(r"\s+", " ", _NOT_IN_XML.sub("", text))
    return _WORDS.sub(rf"{_TEXT}\g<0>{_TEXT}", text)


def _with_whole_lists(text: str) -> str:
    """The text without blank lines within lists, and without items and headings that are empty."""
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
    text = "\n\n".join(blocks).replace(_TEXT, "")
    return text.replace(_LIST, "").replace(_BACKSLASH, "\\")


def without_link_marks(text: str) -> str:
    """The text without LINK and LINK_END, and without a second space where they stood."""
    if LINK not in text:
        return text
    text = text.replace(LINK, "").replace(LINK_END, "")
    return re.sub(r"(?<=\S) {2,}", " ", text)
