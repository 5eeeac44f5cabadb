"""Text of EPUB books as Markdown: their chapters in reading order."""

from posixpath import dirname, join, normpath
from urllib.parse import unquote
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, ParseError

from stages.extract.archives import Archive
from stages.extract.extracted import Extracted, UnreadableError, extractor
from stages.extract.html_markdown import LINK, LINK_END, markdown
from stages.extract.web import decoded_html, is_links

_CONTAINER, _ENCRYPTION = "META-INF/container.xml", "META-INF/encryption.xml"
_PAGES = (".xhtml", ".html", ".htm")


@extractor("epub")
def epub_text(content: bytes) -> Extracted:
    """The text of all files that the book's spine names, in its order, without the table of
    contents; without a usable spine, that of all its pages, by name.

    Chapters that are encrypted, damaged or not in the archive are `missing`. Raises UnreadableError
    for what is torn, no EPUB, encrypted, or has no text.
    """
    archive = Archive(content, "EPUB")
    names, is_spine = _spine(archive)
    locked = _encrypted(archive)
    missing: dict[str, list[str]] = {}
    parts = []
    for name in names:
        page = None if name in locked else archive.read(name)
        if page is None:
            missing.setdefault(_why_missing(name, locked, archive), []).append(name)
        else:
            parts.append(_chapter(decoded_html(page)))
    parts = [part for part in parts if part]
    if not parts and locked:
        raise UnreadableError("an encrypted EPUB; get one without copy protection")
    if not parts:
        raise UnreadableError("no text in this EPUB, or it is none; fetch it again")
    wrong = [f"{why}: {', '.join(lost[:5])}" for why, lost in missing.items()]
    wrong += [] if is_spine else ["no order of chapters in it, read by name"]
    return Extracted("\n\n".join(parts), "; ".join(wrong) or None)


def _chapter(html: str) -> str:
    """A page's text; none of a table of contents, which has links alone."""
    text = markdown(html, is_skipped=lambda tag, attrs, inside: tag == "nav")
    blocks = [block for block in text.split("\n\n") if not block.startswith("#")]
    is_contents = text.count(LINK) > 2 and all(map(is_links, blocks))
    return "" if is_contents else text.replace(LINK, "").replace(LINK_END, "")


def _why_missing(name: str, locked: set[str], archive: Archive) -> str:
    if name in locked:
        return "encrypted"
    return "damaged" if name in archive.names else "not in the archive"


def _spine(archive: Archive) -> tuple[list[str], bool]:
    """The names of the book's pages, and whether they are those of its spine."""
    book = _book(archive)
    root = _parsed(archive.read(book)) if book else None
    found = list(_named(root, dirname(book))) if root is not None and book else []
    if any(name in archive.names for name in found):
        return found, True
    return sorted(name for name in archive.names if name.lower().endswith(_PAGES)), False


def _book(archive: Archive) -> str | None:
    """The name of the file that lists the book's parts."""
    root = _parsed(archive.read(_CONTAINER))
    for element in _all(root, "rootfile"):
        if path := element.get("full-path"):
            return normpath(unquote(path))
    return next((name for name in sorted(archive.names) if name.endswith(".opf")), None)


def _named(root: Element, folder: str) -> list[str]:
    """The names of the pages that the spine lists, each once, but for the table of contents."""
    items = {item.get("id"): item for item in _all(root, "item")}
    wanted = [items.get(reference.get("idref")) for reference in _all(root, "itemref")]
    pages = (
        normpath(join(folder, unquote(item.get("href", ""))))
        for item in wanted
        if item is not None and "nav" not in item.get("properties", "").split()
    )
    return [*dict.fromkeys(pages)]


def _encrypted(archive: Archive) -> set[str]:
    """The names of encrypted files."""
    root = _parsed(archive.read(_ENCRYPTION))
    uris = [element.get("URI", "") for element in _all(root, "CipherReference")]
    return {normpath(unquote(uri)) for uri in uris}


def _parsed(content: bytes | None) -> Element | None:
    try:
        return None if content is None else ElementTree.fromstring(content)
    except (ParseError, ValueError, LookupError):
        return None


def _all(root: Element | None, name: str) -> list[Element]:
    """The elements of that name in any namespace, in order."""
    return [] if root is None else [e for e in root.iter() if e.tag.rpartition("}")[2] == name]
