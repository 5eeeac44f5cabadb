"""Text of PDFs as Markdown: lines by PDFium, tables with rules by pdfplumber; images of pages.

Running heads, feet and page numbers are left out; paragraphs are joined over lines, columns and
pages; headings are found by the height and weight of their letters.
"""

import io
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import accumulate, islice
from typing import Any

from stages.extract.extracted import EXTRA, Extracted, UnreadableError, extractor
from stages.extract.pdf_lines import Line, lines_of
from stages.extract.pdf_paragraphs import paragraphs
from stages.extract.pdf_tables import ruled_grids, with_tables
from stages.extract.running_heads import without_running_heads

# Paths on a page: a table's rules are more, a drawing's far more.
_LEAST_PATHS, _MOST_PATHS = 4, 3000
_WIDTH, _HEIGHT, _QUALITY = 900, 1600, 80  # pixels that the image of a page has at most, of JPEG


@extractor("pdf")
def pdf_text(content: bytes) -> Extracted:
    """The text of all pages. Raises UnreadableError for a PDF that is torn, encrypted or has no
    text (a scan), or where pypdfium2 or pdfplumber is not installed."""
    pypdfium2, document = _opened(content)
    found = [_page(pypdfium2, document, index) for index in range(len(document))]
    pages = [lines for lines, _ in found]
    if not any(pages):
        raise UnreadableError(
            f"no text in the {len(pages)} pages of this PDF, which is probably a scan; recognize "
            "its text first (ocrmypdf)"
        )
    ruled = [index for index, (_, has_rules) in enumerate(found) if has_rules]
    grids = ruled_grids(content, ruled)
    without = {
        "text": [index for index, lines in enumerate(pages) if not lines],
        "tables looked for": [index for index in ruled if index not in grids],
    }
    made = paragraphs(
        [
            with_tables(lines, grids.get(index, []))
            for index, lines in enumerate(without_running_heads(pages))
        ]
    )
    text = "\n\n".join(text for _, text in made)
    return Extracted(
        text, _missing(without, len(pages)), {"page_starts": _page_starts(made, len(pages))}
    )


def page_image(content: bytes, index: int) -> bytes:
    """The page of a PDF as JPEG. Raises UnreadableError where that cannot be drawn."""
    pypdfium2, document = _opened(content)
    try:
        page = document[index]
        scale = min(_WIDTH / page.get_width(), _HEIGHT / page.get_height())
        image = page.render(scale=scale).to_pil()
    except (IndexError, ZeroDivisionError, pypdfium2.PdfiumError) as error:
        raise UnreadableError(f"page {index + 1} cannot be drawn ({error})") from None
    made = io.BytesIO()
    image.convert("RGB").save(made, "JPEG", quality=_QUALITY)
    return made.getvalue()


def _opened(content: bytes) -> tuple[Any, Any]:
    """The library, and the document that it has opened. Raises UnreadableError."""
    try:
        import pypdfium2
    except ImportError:
        raise UnreadableError(f"a PDF needs pypdfium2; {EXTRA}") from None
    try:
        return pypdfium2, pypdfium2.PdfDocument(content)
    except pypdfium2.PdfiumError as error:
        raise UnreadableError(_advice(str(error))) from None


def _page_starts(made: Sequence[tuple[int, str]], num_pages: int) -> list[int]:
    """At which character the first paragraph begins that begins on a page, or after it;
    the text's end where none does."""
    ends = [0, *accumulate(len(text) + len("\n\n") for _, text in made)]
    pages = [page for page, _ in made]
    last = max(0, ends[-1] - len("\n\n"))  # no blank lines follow the last paragraph
    return [min(ends[bisect_left(pages, page)], last) for page in range(num_pages)]


def _advice(error: str) -> str:
    if "password" in error.lower():
        return "an encrypted PDF; save it without a password"
    return f"damaged, or no PDF ({error.rstrip('.')}); fetch it again"


def _missing(without: Mapping[str, Sequence[int]], num_pages: int) -> str | None:
    """A line: what is missing, and in which pages; None where nothing is."""
    lines = [
        f"no {what} in {len(pages)} of {num_pages} pages ({_numbers(pages)})"
        for what, pages in without.items() if pages
    ]  # fmt: skip
    return "; ".join(lines) or None


def _numbers(pages: Sequence[int]) -> str:
    shown = ", ".join(str(index + 1) for index in pages[:10])
    return shown + (" ..." if len(pages) > 10 else "")


def _page(pypdfium2: Any, document: Any, index: int) -> tuple[list[Line], bool]:
    """The lines of a page, none where it has no text or cannot be read; and whether it may have
    tables with rules."""
    raw = pypdfium2.raw
    try:
        page = document[index]
        lines = lines_of(page, raw)
        paths = page.get_objects(filter=[raw.FPDF_PAGEOBJ_PATH])
        num_paths = sum(1 for _ in islice(paths, _MOST_PATHS + 1)) if lines else 0
        page.close()
    except pypdfium2.PdfiumError:
        return [], False
    return lines, _LEAST_PATHS <= num_paths <= _MOST_PATHS
