"""Text of PDFs, by PDFium. Lines stay lines; blank lines between paragraphs are found by the
layout."""

from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

from stages.extract.extracted import EXTRA, Extracted, UnreadableError

_HYPHEN = "\ufffe"  # PDFium's mark for a hyphen at a line's end; both halves stand on one line
# A paragraph begins below a gap of so many line distances, after an indent of so many heights of a
# line, and where the height of lines changes by this factor (headings).
_GAP, _INDENT, _TALLER = 1.25, 0.8, 1.15
_ENDS = tuple(".!?:;\"'”’)]»。！？")


class _Line(NamedTuple):
    """Positions in points; y grows upwards."""

    text: str
    left: float
    bottom: float
    height: float


def pdf_text(content: bytes) -> Extracted:
    """The text of all pages. Raises UnreadableError for a PDF that is torn, encrypted or has no
    text (a scan), or where pypdfium2 is not installed."""
    try:
        import pypdfium2
    except ImportError:
        raise UnreadableError(f"a PDF needs pypdfium2; {EXTRA}") from None
    try:
        document = pypdfium2.PdfDocument(content)
    except pypdfium2.PdfiumError as error:
        raise UnreadableError(_advice(str(error))) from None
    pages = [_page(pypdfium2, document, index) for index in range(len(document))]
    usual = median([step for page in pages for step in _steps(page) if step > 0] or [0.0])
    read = [_paragraphs(page, usual) for page in pages if page]
    if not read:
        raise UnreadableError(
            f"no text in the {len(pages)} pages of this PDF, which is probably a scan; recognize "
            "its text first (ocrmypdf)"
        )
    empty = [str(number) for number, page in enumerate(pages, 1) if not page]
    missing = f"no text in {len(empty)} of {len(pages)} pages ({_first(empty)})" if empty else None
    return Extracted(_joined(read), missing)


def _advice(error: str) -> str:
    if "password" in error.lower():
        return "an encrypted PDF; save it without a password"
    return f"damaged, or no PDF ({error.rstrip('.')}); fetch it again"


def _first(numbers: list[str]) -> str:
    return ", ".join(numbers[:10]) + (" ..." if len(numbers) > 10 else "")


def _page(pypdfium2: Any, document: Any, index: int) -> list[_Line]:
    """The lines of a page; none where it has no text or cannot be read."""
    try:
        page = document[index]
        found = page.get_textpage()
        text = found.get_text_range().replace("\0", " ")
        # Beyond the first plane of Unicode characters and positions differ; lines are kept then.
        has_places = len(text) == found.count_chars()
        lines = _lines(text, found if has_places else None)
        found.close()
        page.close()
    except pypdfium2.PdfiumError:
        return []
    return [line for line in lines if line.text]


def _lines(text: str, places: Any) -> list[_Line]:
    start, lines = 0, []
    for written in text.split("\r\n"):
        left, bottom, _, top = (
            places.get_charbox(start, loose=True) if places and written else (0.0, 0.0, 0.0, 0.0)
        )
        shown = written.replace(_HYPHEN, "").replace("\r", "\n").strip()
        lines.append(_Line(shown, left, bottom, top - bottom))
        start += len(written) + len("\r\n")
    return lines


def _steps(lines: list[_Line]) -> list[float]:
    """The distance of each line below the one before; less than 0 at the top of a column."""
    return [above.bottom - line.bottom for above, line in pairwise(lines)]


def _paragraphs(lines: list[_Line], usual: float) -> list[str]:
    """The lines grouped; the lines of a paragraph keep their line breaks. `usual`: the step between
    lines of a paragraph."""
    groups = [[line] for line in lines[:1]]
    for (above, line), step in zip(pairwise(lines), _steps(lines), strict=True):
        if _begins(above, line, step, usual, first=groups[-1][0]):
            groups.append([line])
        else:
            groups[-1].append(line)
    return ["\n".join(line.text for line in group) for group in groups]


def _begins(above: _Line, line: _Line, step: float, usual: float, first: _Line) -> bool:
    """True if a paragraph begins with `line`; `first`: the first line of the one before."""
    if not line.height or not above.height:
        return False
    if step < -line.height:  # the next column
        return not _goes_on(above.text, line.text)
    ratio = line.height / above.height
    is_indented = line.left - above.left > _INDENT * line.height and above is not first
    return step > _GAP * usual or not 1 / _TALLER < ratio < _TALLER or is_indented


def _goes_on(above: str, below: str) -> bool:
    """True if a sentence is cut by the end of a page or column."""
    return not above.endswith(_ENDS) and below[:1].islower()


def _joined(pages: list[list[str]]) -> str:
    text = "\n\n".join(pages[0])
    for page in pages[1:]:
        text += ("\n" if _goes_on(text[-1:], page[0]) else "\n\n") + "\n\n".join(page)
    return text
