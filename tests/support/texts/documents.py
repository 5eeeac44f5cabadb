"""Real PDF, EPUB and Word files, made for tests by other libraries than those that read them."""

import io
import re
import zipfile
from collections.abc import Mapping, Sequence

from docx import Document as WordDocument
from docx.document import Document as WordFile
from docx.oxml import parse_xml
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.pdfgen.canvas import Canvas


def pdf(*pages: Sequence[str], password: str | None = None) -> bytes:
    """A page per list of lines, set in 10 points; a page without lines has a drawing."""
    file = io.BytesIO()
    locked = StandardEncryption(password) if password else None
    canvas = Canvas(file, invariant=1, encrypt=locked)
    for lines in pages:
        canvas.setFont("Helvetica", 10)
        for number, line in enumerate(lines):
            canvas.drawString(72, 800 - 12 * number, line)
        if not lines:
            canvas.rect(100, 100, 300, 300, fill=1)
        canvas.showPage()
    canvas.save()
    return file.getvalue()


def scan(num_pages: int = 1) -> bytes:
    return pdf(*[()] * num_pages)


def word(*parts: str | Sequence[Sequence[str]], head: str = "", foot: str = "") -> bytes:
    """A paragraph per string; one that begins with `# ` is a heading, with `- ` or `1. ` a list's
    item. A table per list of rows."""
    document = WordDocument()
    document.sections[0].header.paragraphs[0].text = head
    document.sections[0].footer.paragraphs[0].text = foot
    for part in parts:
        if not isinstance(part, str):
            table = document.add_table(len(part), len(part[0]))
            for row, cells in zip(table.rows, part, strict=True):
                for cell, text in zip(row.cells, cells, strict=True):
                    cell.text = text
        elif match := re.match(r"(#+|-|\d+\.) ", part):
            styles = {"#": f"Heading {len(match[1])}", "-": "List Bullet"}
            style = styles.get(part[0], "List Number")
            document.add_paragraph(part[match.end() :], style=style)
        else:
            document.add_paragraph(part)
    return saved(document)


def saved(document: WordFile) -> bytes:
    file = io.BytesIO()
    document.save(file)
    return file.getvalue()


_SPACES = {
    "w": "schemas.openxmlformats.org/wordprocessingml/2006/main",
    "m": "schemas.openxmlformats.org/officeDocument/2006/math",
    "mc": "schemas.openxmlformats.org/markup-compatibility/2006",
    "wps": "schemas.microsoft.com/office/word/2010/wordprocessingShape",
    "c": "schemas.openxmlformats.org/drawingml/2006/chart",
}


def word_of(*paragraphs: str) -> bytes:
    """A Word file of paragraphs in its XML, in which `{run:...}` is a run of text."""
    spaces = " ".join(f'xmlns:{name}="http://{address}"' for name, address in _SPACES.items())
    spaces += ' xmlns:v="urn:schemas-microsoft-com:vml" xmlns:o="urn:schemas-microsoft-com:office"'
    document = WordDocument()
    for place, paragraph in enumerate(paragraphs):
        runs = re.sub(r"{run:(.*?)}", r"<w:r><w:t>\1</w:t></w:r>", paragraph)
        document.element.body.insert(place, parse_xml(f"<w:p {spaces}>{runs}</w:p>"))
    return saved(document)


def epub(
    chapters: Mapping[str, str],
    spine: Sequence[str] | None = None,
    more: Mapping[str, str | bytes | None] | None = None,
    folder: str = "",
) -> bytes:
    """A book of XHTML bodies by file name; `spine`: their order, by name. `more`: further files, or
    none of a name; `folder`: that all are in."""
    items = "".join(f'<item id="i{n}" href="{name}" media-type="application/xhtml+xml"/>'
                    for n, name in enumerate(chapters))  # fmt: skip
    numbers = {name: n for n, name in enumerate(chapters)}
    wanted = chapters if spine is None else spine
    refs = "".join(f'<itemref idref="i{numbers.get(name, name)}"/>' for name in wanted)
    files: dict[str, str | bytes | None] = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:'
        'container"><rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>',
        "OEBPS/book.opf": f'<package xmlns="http://www.idpf.org/2007/opf"><manifest>{items}'
        f"</manifest><spine>{refs}</spine></package>",
        **{f"OEBPS/{name}": f'<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml">'
           f"<head><title>T</title></head><body>{body}</body></html>"
           for name, body in chapters.items()},
        **(more or {}),
    }  # fmt: skip
    return zipped({folder + name: content for name, content in files.items()})


def zipped(files: Mapping[str, str | bytes | None]) -> bytes:
    """A zip archive; a file that is null is left out. Names are written as they stand."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            if content is not None:
                archive.writestr(name, content)
    return file.getvalue()
