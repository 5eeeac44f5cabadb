"""Text of EPUB books as Markdown: their chapters in reading order."""

from posixpath import dirname, join
from typing import Any

from stages.extract.archives import Archive
from stages.extract.extracted import Extracted, UnreadableError, extractor
from stages.extract.html_markdown import (
    LINK,
    html_tree,
    markdown,
    without_link_marks,
    xml_elements,
    xml_tree,
)
from stages.extract.web import is_links, mark_links, read_html

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
    root = archive.root_of(_CONTAINER) or ""
    names, missing = _spine(archive, root)
    is_spine = bool(names)
    locked = _encrypted(archive, root)
    parts: list[str] = []
    notes: dict[str, str] = {}
    pages = sorted(name for name in archive.names if name.lower().endswith(_PAGES)
                   and not name.startswith("__MACOSX/"))  # fmt: skip
    for name in names or pages:
        page = None if name in locked else archive.read(name)
        if page is None:
            why = "encrypted" if name in locked else "damaged"
            missing.setdefault(why, []).append(name)
            continue
        try:
            read = read_html(page)
            parts += filter(None, [_chapter(read.text)])
            notes |= {read.note: name} if read.note else {}
        except UnreadableError as error:
            missing.setdefault(str(error).partition(";")[0], []).append(name)
    if not parts and locked:
        raise UnreadableError("an encrypted EPUB; get one without copy protection")
    if not parts:
        raise UnreadableError("no text in this EPUB, or it is none; fetch it again")
    wrong = [f"{why}: {', '.join(lost[:5])}" for why, lost in missing.items()]
    wrong += [] if is_spine else ["no order of chapters in it, read by name"]
    note = "; ".join(f"{name}: {note}" for note, name in notes.items())
    return Extracted("\n\n".join(parts), "; ".join(wrong) or None, note=note or None)


def _chapter(html: str) -> str:
    """A page's text; none of a table of contents, which has links alone."""
    root = html_tree(html)
    for element in [*root.iter("nav")]:
        element.drop_tree()
    mark_links(root)
    text = markdown(root)
    blocks = [block for block in text.split("\n\n") if not block.startswith("#")]
    is_contents = text.count(LINK) > 2 and all(map(is_links, blocks))
    return "" if is_contents else without_link_marks(text)


def _spine(archive: Archive, root: str) -> tuple[list[str], dict[str, list[str]]]:
    """The names of the pages that the spine lists, each once, but for the table of contents; none
    if it has none of them; and what is missing, by the reason."""
    book = _book(archive, root)
    package = _parsed(archive, book)
    items = {item.get("id"): item for item in xml_elements(package, "item")}
    folders = (dirname(book or ""), archive.folder(book or ""), root)
    wanted = [items.get(reference.get("idref")) for reference in xml_elements(package, "itemref")]
    names: dict[str, None] = {}
    lost: dict[str, None] = {}
    for item in wanted:
        if item is not None and "nav" not in item.get("properties", "").split():
            href = item.get("href", "").strip().lstrip("/")
            found = (archive.named(join(folder, href)) for folder in folders)
            name = next(filter(None, found), None)
            (names if name else lost)[name or join(folders[0], href)] = None
    return [*names], {"not in the archive": [*lost]} if names and lost else {}


def _book(archive: Archive, root: str) -> str | None:
    """The name of the file that lists the book's parts."""
    for element in xml_elements(_parsed(archive, archive.named(root + _CONTAINER)), "rootfile"):
        if name := archive.named(join(root, element.get("full-path", "").lstrip("/"))):
            return name
    return next((name for name in sorted(archive.names) if name.lower().endswith(".opf")), None)


def _encrypted(archive: Archive, root: str) -> set[str | None]:
    """The names of encrypted files."""
    package = _parsed(archive, archive.named(root + _ENCRYPTION))
    uris = [element.get("URI", "") for element in xml_elements(package, "CipherReference")]
    return {archive.named(join(root, uri)) for uri in uris}


def _parsed(archive: Archive, name: str | None) -> Any:
    content = archive.read(name) if name else None
    return xml_tree(content, recover=True) if content else None
