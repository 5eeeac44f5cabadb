"""Texts of web pages, EPUB books and Word files as Markdown.

lxml parses HTML, the tree is reduced to the elements that shape the text, and html-to-markdown
writes headings, lists and tables. mammoth converts Word files to HTML.
"""

import io
import re
import zipfile
import zlib
from collections import Counter
from contextlib import suppress
from itertools import chain
from posixpath import dirname, normpath
from typing import Any
from unicodedata import normalize
from urllib.parse import unquote

from stages.extract.extracted import SOFT_HYPHEN, Extracted, UnreadableError, extractor
from stages.text.encodings import Decoded, decoded

_TEXT = "\ufdd0"  # around the text of a line, so that nothing in it is Markdown syntax
_LIST, _BACKSLASH = "\ufdd1", "\ufdd2"  # alone before a list; in place of a backslash
_WORDS = re.compile(r"\S(?:.*\S)?")
_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufdd0-\ufdd2\ufffe\uffff]")
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_CELLS = ("tr", "td", "th")
_KEPT = {"html", "body", "div", "p", "br", "ul", "ol", "li", "table", *_CELLS, *HEADINGS}
_BLOCKS = (
    "address", "article", "aside", "blockquote", "caption", "center", "dd", "details", "dl", "dt",
    "fieldset", "figcaption", "figure", "footer", "form", "header", "hr", "main", "nav", "pre",
    "section", "summary",
)  # fmt: skip
_PRE = re.compile(r"<pre\b.*?(?:</pre\b|\Z)", re.DOTALL | re.IGNORECASE)
_TAG_OR_LINE_END = re.compile(r"(<[^<>]*>)|\n")
_LONGEST_CELL = 1000  # characters: a table with longer ones is for the page's layout
_ITEM = re.compile(r" *(?:-|\d+\.) ")  # text that looks like an item has _TEXT before it
_BARE = re.compile(r" *(?:(?:-|\d+\.) *)+|#+")  # items and headings without a text

# Navigation, headers, footers and cookie notices of web pages are recognized by their element, its
# role, class or id, or because a block has only links.
_BESIDE = frozenset({"nav", "footer", "button", "select", "dialog"})
# Elements that are kept inside these, where they are the title or notes.
_UNLESS_INSIDE = {"header": {"article", "main"}, "aside": {"article"}, "form": {"article", "main"}}
_ROLES = frozenset({"navigation", "banner", "contentinfo", "search", "menu", "menubar", "toolbar"})
# Words of classes and ids that mark navigation, unless words of _TITLED stand beside them.
_NAMES = frozenset({
    "nav", "navbar", "navigation", "menu", "breadcrumb", "breadcrumbs", "footer", "sidebar",
    "cookie", "cookies", "consent", "masthead", "topbar", "toolbar", "skip", "share", "social",
    "newsletter", "advert", "advertisement", "ads", "promo", "pagination", "pager",
})  # fmt: skip
_HEADS = frozenset({"header", "site", "page", "global", "main", "top"})
_TITLED = frozenset({"title", "article", "entry", "post", "content", "body", "text"})
_SMALL = frozenset({"a", "li", "td", "p", "span", *HEADINGS})
_MAIN = ("article", "main")
_MOST_LEFT = 0.2  # share of a block outside of its links; navigation has no more
_LEAST_KEPT = 0.2  # share of a page's characters; a page with fewer left is made of links

_PARTS = re.compile(r"(?i)word/(?:document\d*|footnotes|endnotes)\.xml")
_LOST = {"oMath": "equation", "chart": "chart", "relIds": "diagram"}  # by their tags


def html_tree(html: str) -> Any:
    """The root element of a page without invisible elements. In <pre>, line ends become <br>."""
    import lxml.html
    from lxml import etree

    html = _PRE.sub(lambda pre: _TAG_OR_LINE_END.sub(lambda m: m[1] or "<br>", pre[0]), html)
    source = _NOT_IN_XML.sub("", html)
    parser = lxml.html.HTMLParser(
        encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True
    )
    try:
        root = lxml.html.document_fromstring(source.encode(), parser=parser)
    except etree.ParserError:  # empty
        return lxml.html.Element("html")
    hidden = ("script", "style", "title", "template", "noscript", "svg")
    etree.strip_elements(root, *hidden, with_tail=False)
    return root


def markdown(root: Any) -> str:
    """The text of the tree, which is changed. Raises UnreadableError if it is nested too deep."""
    import html_to_markdown
    from lxml import etree

    _make_plain(etree, root)
    if root.xpath("//*[count(ancestor::*) > 900]"):  # html-to-markdown drops what is below 1,000
        raise UnreadableError("over 900 elements are within each other; fix or delete it")
    options = html_to_markdown.ConversionOptions(
        bullets="-", compact_tables=True, autolinks=False, extract_metadata=False,
        preprocessing=html_to_markdown.PreprocessingOptions(enabled=False),
    )  # fmt: skip
    plain = etree.tostring(root, encoding="unicode", method="html")
    lines = (html_to_markdown.convert(plain, options).content or "").split("\n")
    written = "\n".join(line for line in map(str.rstrip, lines) if not _BARE.fullmatch(line))
    # Blank lines within lists go; _LIST stands between two lists.
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


def _make_plain(etree: Any, root: Any) -> None:
    """Keep the elements that shape the text; white space becomes one space, as in a browser."""
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
            is_kept = name in ("start", "colspan", "rowspan")
            if not is_kept or not re.fullmatch("[0-9]{1,4}", value):
                del element.attrib[name]
        element.text, element.tail = _plain(element.text), _plain(element.tail)


def _is_layout(table: Any) -> bool:
    """True for a table of one row or column, or with a table, a heading or a long text in a cell.
    Its cells become paragraphs."""
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


@extractor("html", "htm", "xhtml")
def web_text(content: bytes) -> Extracted:
    """The text of a page; empty where it has none."""
    page = _page(content)
    everything, root = markdown(html_tree(page.text)), html_tree(page.text)
    for element in [*root.iter()]:
        if element.getparent() is not None and (_is_beside(element) or _is_links(element)):
            element.drop_tree()
    text = markdown(root)
    if len(text) < _LEAST_KEPT * len(everything):
        text = everything  # a page of links, or most of it is in an element that is never closed
    return Extracted(text, note=page.note)


def _page(content: bytes) -> Decoded:
    try:
        return decoded(content)
    except UnicodeError:
        raise UnreadableError("text of no known encoding; save it as UTF-8 or delete it") from None


def _is_beside(element: Any) -> bool:
    tag, role = element.tag, element.get("role") or ""
    if tag in ("html", "body", *_MAIN) or role.startswith("doc-"):
        return False
    if tag in _BESIDE or role in _ROLES or element.get("hidden") is not None:
        return True
    inside = {ancestor.tag for ancestor in element.iterancestors(*_MAIN)}
    named = [element.get("class") or ""]
    if tag in ("div", "ul", "ol", "table", "header", "aside", "form"):
        named += [element.get("id") or ""]  # not of sections, whose ids come from their headings
    names = {*re.findall("[a-z]+", " ".join(named).lower())}
    if names & _TITLED or tag in _SMALL:
        return False
    is_named = bool(names & _NAMES) or ("header" in names and names <= _HEADS)
    return (is_named and not inside) or (tag in _UNLESS_INSIDE and not _UNLESS_INSIDE[tag] & inside)


def _is_links(element: Any) -> bool:
    """True for a block outside of the main text that is hardly more than links."""
    if element.tag not in ("p", "ul", "ol", "div", "table", "dl"):
        return False
    below = element.iterdescendants("div", *_MAIN, *HEADINGS)
    is_text = next(chain(element.iterancestors(*_MAIN), below), None) is not None
    return not is_text and _has_links_alone(element)


def _has_links_alone(element: Any) -> bool:
    text = " ".join(element.text_content().split())
    links = "".join(link.text_content() for link in element.iter("a"))
    num_left = len(re.sub(r"\W", "", text)) - len(re.sub(r"\W", "", links))
    return bool(links.strip()) and num_left <= _MOST_LEFT * len(text)


@extractor("epub")
def epub_text(content: bytes) -> Extracted:
    """The text of all files that the book's spine names, in its order, without the table of
    contents. Chapters that are encrypted, damaged or not in the archive are `missing`. Raises
    UnreadableError for a file that is torn, no EPUB, encrypted, or has no text."""
    from lxml import etree

    book = _Book(content)
    parts: list[str] = []
    notes: dict[str, str] = {}
    missing: dict[str, list[str]] = {}
    for name in book.spine():
        try:
            page = _page(book.read(name))
            root, rest = html_tree(page.text), html_tree(page.text)
            etree.strip_elements(root, "nav", with_tail=False)
            etree.strip_elements(rest, "nav", *HEADINGS, with_tail=False)
            num_links = sum(bool(link.text_content().strip()) for link in rest.iter("a"))
            is_contents = num_links > 2 and _has_links_alone(rest)
            if not is_contents and (text := markdown(root)):
                parts.append(text)
            notes |= {page.note: name} if page.note else {}
        except UnreadableError as error:
            missing.setdefault(str(error).partition(";")[0], []).append(name)
    if not parts:
        if "encrypted" in missing:
            raise UnreadableError("an encrypted EPUB; get one without copy protection")
        raise UnreadableError("no text in this EPUB, or it is none; fetch it again")
    lost = [f"{why}: {', '.join(names[:5])}" for why, names in missing.items()]
    note = "; ".join(f"{name}: {note}" for note, name in notes.items())
    return Extracted("\n\n".join(parts), "; ".join(lost) or None, note=note or None)


class _Book:
    """The files of an EPUB. Raises UnreadableError where it is no archive."""

    def __init__(self, content: bytes) -> None:
        self._archive = _archive(content, "EPUB")
        self._locked: set[str | None] = set()
        self._names = {_key(name): name for name in reversed(self._archive.namelist())}
        locks = self._elements(self._file("META-INF/encryption.xml"), "CipherReference")
        self._locked = {self._file(lock.get("URI", "")) for lock in locks}

    def spine(self) -> list[str]:
        """The pages that the spine lists, each once."""
        roots = self._elements(self._file("META-INF/container.xml"), "rootfile")
        packages = (self._file(root.get("full-path", "")) for root in roots)
        package = next(filter(None, packages), None)
        items = {item.get("id"): item for item in self._elements(package, "item")}
        folder = dirname(package or "")
        names: dict[str, None] = {}
        for reference in self._elements(package, "itemref"):
            item = items.get(reference.get("idref"))
            if item is not None and "nav" not in item.get("properties", "").split():
                href = item.get("href", "")
                names[self._file(href, folder) or normpath(f"{folder}/{href}")] = None
        return [*names]

    def read(self, name: str) -> bytes:
        """Raises UnreadableError for a file that is encrypted, damaged or not in the archive."""
        if name in self._locked:
            raise UnreadableError("encrypted")
        try:
            return self._archive.read(name)
        except KeyError:
            raise UnreadableError("not in the archive") from None
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError):
            raise UnreadableError("damaged") from None

    def _file(self, href: str, folder: str = "") -> str | None:
        """The file that a link leads to, however it is spelled; else the only file of its name."""
        keys = [_key(f"{folder}/{path.strip()}") for path in (re.split("[?#]", href)[0], href)]
        for key in keys:
            if key in self._names:
                return self._names[key]
        ends = tuple(f"/{key.rpartition('/')[2]}" for key in keys)
        named = [name for key, name in self._names.items() if key.endswith(ends)]
        return named[0] if len(named) == 1 else None

    def _elements(self, name: str | None, tag: str) -> list[Any]:
        """The elements of an XML file, which may be damaged, by tag name in any namespace."""
        from lxml import etree

        with suppress(UnreadableError, etree.XMLSyntaxError, ValueError, LookupError):
            content = self.read(name) if name else b""
            root = etree.fromstring(content, _xml_parser(recover=True))
            return [] if root is None else [*root.iter(f"{{*}}{tag}")]
        return []


def _key(name: str) -> str:
    """One form for all spellings of a file's name in links."""
    path = normpath("/" + unquote(name).replace("\\", "/").lstrip("/"))
    return normalize("NFC", path).casefold()


def _archive(content: bytes, kind: str) -> zipfile.ZipFile:
    try:
        try:  # many do not declare that their names are UTF-8
            return zipfile.ZipFile(io.BytesIO(content), metadata_encoding="utf-8")
        except UnicodeError:
            return zipfile.ZipFile(io.BytesIO(content))
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        why = f"damaged, encrypted, or no {kind} ({error})"
        raise UnreadableError(f"{why}; fetch it again, or save it without a password") from None


def _xml_parser(recover: bool) -> Any:
    from lxml import etree

    return etree.XMLParser(
        recover=recover, resolve_entities=False, no_network=True, huge_tree=True,
        remove_comments=True, remove_pis=True,
    )  # fmt: skip


@extractor("docx")
def word_text(content: bytes) -> Extracted:
    """The text of a .docx: headings, paragraphs, lists, tables and notes, text boxes behind the
    paragraph that has them; without pictures. Equations, embedded objects, charts and diagrams are
    `missing`. Raises UnreadableError for one that is torn or encrypted."""
    import mammoth
    from lxml import etree

    plain, lost = io.BytesIO(), Counter[str]()  # lost: by kind, what has no text here
    with _archive(content, "Word file") as old, zipfile.ZipFile(plain, "w") as new:
        if not {"word/document.xml", "[Content_Types].xml"} & {*old.namelist()}:
            raise UnreadableError("a zip archive, no Word file; unpack it or save it as .docx")
        for name in dict.fromkeys(n for n in old.namelist() if n.endswith((".xml", ".rels"))):
            part = old.read(name)
            if _PARTS.fullmatch(name):
                root = etree.fromstring(part, _xml_parser(recover=False))
                for item in root.iter("{*}OLEObject"):
                    lost[f"embedded {item.get('ProgID', 'object')}"] += 1
                for tag, kind in _LOST.items():
                    lost += Counter(kind for _ in root.iter(f"{{*}}{tag}"))
                _make_readable(root)
                part = etree.tostring(root)
            new.writestr(name, part)
    no_pictures = mammoth.images.img_element(lambda image: {})
    text = markdown(html_tree(mammoth.convert_to_html(plain, convert_image=no_pictures).value))
    if not text:
        raise UnreadableError("no text in this Word file; add it or delete the file")
    named = ", ".join(f"{kind}: {times}" for kind, times in lost.items())
    return Extracted(text, f"not read: {named}" if named else None)


def _make_readable(root: Any) -> None:
    """Convert what mammoth leaves out: ruby, and text boxes without a copy in the old format."""
    for box in [*root.iter("{*}txbxContent")]:
        outer = [*box.iterancestors("{*}AlternateContent", "{*}drawing")][-1:]
        if outer and next(outer[0].iterfind(".//{*}Fallback//{*}txbxContent"), None) is None:
            outer[0].addprevious(box)
    for ruby in [*root.iter("{*}ruby")]:
        insertion = ruby.tag.replace("}ruby", "}ins")  # whose content mammoth reads
        for base in ruby.iterfind("{*}rubyBase"):
            base.tag = insertion
        ruby.tag = insertion
