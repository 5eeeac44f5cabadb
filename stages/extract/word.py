"""Text of Word files (.docx), by mammoth."""

import io

from stages.extract.archives import Archive
from stages.extract.extracted import EXTRA, Extracted, UnreadableError, extractor
from stages.extract.html_markdown import markdown


@extractor("docx")
def word_text(content: bytes) -> Extracted:
    """The text of a .docx: headings, paragraphs, lists, tables and notes, without pictures.

    Raises UnreadableError for one that is torn or encrypted, or where mammoth is not installed.
    """
    try:
        import mammoth
    except ImportError:
        raise UnreadableError(f"a Word file needs mammoth; {EXTRA}") from None
    archive = Archive(content, "Word file")
    if not {"word/document.xml", "[Content_Types].xml"} & archive.names:
        raise UnreadableError("a zip archive, no Word file; unpack it or save it as .docx")
    archive.refuse_large((".xml", ".rels"))
    no_pictures = mammoth.images.img_element(lambda image: {})
    html = mammoth.convert_to_html(io.BytesIO(content), convert_image=no_pictures).value
    text = markdown(html)
    if not text:
        raise UnreadableError("no text in this Word file; add it or delete the file")
    return Extracted(text)
