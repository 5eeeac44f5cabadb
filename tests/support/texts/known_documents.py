"""Twelve documents of known text: PDFs, EPUBs, Word files, web pages and Markdown, laid out as such
files are, with heads, feet and navigation that are none of the text.

The paragraphs are of three old stories; headings, lists and tables are ours.
"""

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from typing import Any

from reportlab.lib import colors
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import (
    BaseDocTemplate,
    Flowable,
    Frame,
    PageTemplate,
    Paragraph,
    Spacer,
    TableStyle,
)
from reportlab.platypus import Table as DrawnTable

from stages.corpora.formats.narrativeqa import story as cut_story
from tests.support.texts.documents import epub, word
from tests.support.texts.loading import DATA

Rows = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Part:
    """A heading of a level, a paragraph, the items of a list, or the rows of a table."""

    kind: str  # h1 to h3, p, ul, ol, table
    text: str = ""
    items: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()

    def markdown(self) -> str:
        """As the text of the document has to have it."""
        if self.kind.startswith("h"):
            return "#" * int(self.kind[1]) + " " + self.text
        if self.kind == "table":
            lines = ["| " + " | ".join(row) + " |" for row in self.rows]
            return "\n".join([lines[0], "|" + " --- |" * len(self.rows[0]), *lines[1:]])
        if self.kind == "ul":
            return "\n".join(f"- {item}" for item in self.items)
        if self.kind == "ol":
            return "\n".join(f"{number}. {item}" for number, item in enumerate(self.items, 1))
        return self.text


@dataclass(frozen=True)
class Known:
    """A file, its parts, and the words of its heads, feet and navigation."""

    name: str
    content: bytes
    parts: tuple[Part, ...]
    beside: tuple[str, ...]


TABLE = (
    ("Post", "Garrison", "Distance"),
    ("Owl Creek bridge", "two sentinels", "0 miles"),
    ("North bank", "a company of infantry", "1 mile"),
    ("Stockade, upper", "a brass cannon", "2 miles"),
    ("Depot", "none", "30 miles"),
)
WIDE = (
    ("Year", "Bridges", "Tunnels", "Spent"),
    *((str(1850 + n), str(3 * n + 1), str(n), f"{n * 17}.50") for n in range(1, 9)),
)
LIST = ("lamp oil, two cans of a gallon each", "bread and a cloth to keep it in",
        "a rope of thirty feet, which must not be left on the stairs over night, for it rots "
        "there and has twice been the cause of a fall", "matches")  # fmt: skip
HEADINGS = ("On the Bridge", "The Planter", "What the Scout Said", "Into the Stream",
            "The Way Home", "Notes of the Keeper", "The Fort", "Later Years")  # fmt: skip


@cache
def story() -> tuple[str, ...]:
    """Paragraphs of three stories, in letters that the fonts of every PDF have."""
    files = [DATA / "txt" / "pg375.txt", *sorted((DATA / "narrativeqa" / "tmp").glob("*.content"))]
    paragraphs: list[str] = []
    for file in files:
        text = cut_story(file.read_bytes(), "", "").text
        for curly, plain in {"“": '"', "”": '"', "’": "'", "‘": "'", "—": "--"}.items():
            text = text.replace(curly, plain)
        paragraphs += [" ".join(part.split()) for part in text.split("\n\n")]
    return tuple(dict.fromkeys(part for part in paragraphs if len(part) > 60 and part.isascii()))


def parts(
    first: int, num: int, every: int, extra: Mapping[int, Part] | None = None
) -> tuple[Part, ...]:
    """`num` paragraphs of the stories from `first` on, a heading before every so many; `extra`:
    parts after a paragraph, by its place."""
    document = [Part("h1", "An Account of Owl Creek")]
    for place in range(num):
        if place % every == 0:
            document.append(Part("h2", HEADINGS[place // every % len(HEADINGS)]))
        document.append(Part("p", story()[(first + place) % len(story())]))
        document += [extra[place]] if extra and place in extra else []
    return tuple(document)


@dataclass(frozen=True)
class Layout:
    """How a PDF is set; sizes in points. `head` and `foot` draw on a page, given its number."""

    columns: int = 1
    size: float = 10
    indent: float = 0
    gap: float = 6
    is_justified: bool = True
    has_rules: bool = True
    draw: Callable[[Canvas, int], None] = lambda canvas, page: None


def _styles(layout: Layout) -> dict[str, ParagraphStyle]:
    text: dict[str, Any] = {
        "fontName": "Times-Roman", "fontSize": layout.size, "leading": layout.size * 1.2,
        "alignment": 4 if layout.is_justified else 0,
    }  # fmt: skip
    styles = {
        "p": ParagraphStyle("p", **text, firstLineIndent=layout.indent, spaceAfter=layout.gap)
    }
    for level, size in ((1, 20), (2, 14), (3, 12)):
        head = {"fontName": "Helvetica-Bold", "fontSize": size, "leading": size * 1.2}
        styles[f"h{level}"] = ParagraphStyle(f"h{level}", **head, spaceBefore=8, spaceAfter=6,
                                             keepWithNext=1)  # fmt: skip
    hang = {"leftIndent": 18, "bulletIndent": 4, "spaceAfter": 3}
    return {**styles, "li": ParagraphStyle("li", **text, **hang)}


def pdf(document: Sequence[Part], layout: Layout) -> bytes:
    """The parts set on pages of A4."""
    styles, flow = _styles(layout), list[Flowable]()
    for part in document:
        if part.kind == "table":
            rules = [("GRID", (0, 0), (-1, -1), 0.5, colors.black)] if layout.has_rules else []
            flow += [Spacer(1, 6), DrawnTable(part.rows, style=TableStyle(rules)), Spacer(1, 8)]
        elif part.kind in ("ul", "ol"):
            for number, item in enumerate(part.items, 1):
                marker = "\u2022" if part.kind == "ul" else f"{number}."
                flow.append(Paragraph(escape(item), styles["li"], bulletText=marker))
        else:
            flow.append(Paragraph(escape(part.text), styles[part.kind]))
    width, height = A4
    column = (width - 144 - 18 * (layout.columns - 1)) / layout.columns
    frames = [Frame(72 + n * (column + 18), 72, column, height - 144, 0, 0, 0, 0)
              for n in range(layout.columns)]  # fmt: skip
    file = io.BytesIO()
    template = BaseDocTemplate(file, pagesize=A4, invariant=1)
    template.addPageTemplates(
        PageTemplate(frames=frames, onPage=lambda canvas, doc: layout.draw(canvas, doc.page))
    )
    template.build(flow)
    return file.getvalue()


def _report_edges(canvas: Canvas, page: int) -> None:
    canvas.setFont("Helvetica", 8)
    canvas.drawString(72, 800, "Commission of Bridges")
    canvas.drawRightString(523, 800, "Report of the Year")
    canvas.drawCentredString(297, 40, f"Page {page} of 12")


def _book_edges(canvas: Canvas, page: int) -> None:
    """No head on the first page; then the book's on even pages, the chapter's on odd ones."""
    canvas.setFont("Times-Italic", 9)
    if page == 1:
        canvas.drawCentredString(297, 40, "9")
    elif page % 2 == 0:
        canvas.drawString(72, 795, f"{page + 8}    THE OWL CREEK ANNUAL")
    else:
        canvas.drawRightString(523, 795, f"Chapter {page // 4 + 1}: In the Glen    {page + 8}")


def _article_edges(canvas: Canvas, page: int) -> None:
    canvas.setFont("Times-Roman", 8)
    canvas.drawCentredString(297, 800, "Journal of Crossings, vol. 12, no. 3 (1893)")
    canvas.drawCentredString(297, 45, str(300 + page))
    canvas.drawString(72, 45, "Draft, not for circulation")


def _letter_edges(canvas: Canvas, page: int) -> None:
    canvas.setFont("Courier", 9)
    canvas.drawRightString(523, 40, f"- {page} -")


def _web(document: Sequence[Part], is_semantic: bool) -> bytes:
    links = "".join(f'<li><a href="/{name}">{name}</a></li>' for name in
                    ("Home", "Timetables", "Tickets and Fares"))  # fmt: skip
    name, foot = "The Railway Gazette", "Printed by the Railway Gazette, all rights reserved"
    if is_semantic:
        before = f"<header><a href='/'>{name}</a></header><nav><ul>{links}</ul></nav>"
        before += "<main><article>"
        after = f"</article></main><aside><h4>Most read</h4><ul>{links}</ul></aside>"
        after += f"<footer>{foot}</footer>"
    else:
        before = "<div id='cookie-notice'>We use cookies. <button>Accept</button></div>"
        before += f"<div class='site-header'><b>{name}</b></div><div><ul>{links}</ul></div>"
        before += "<div class='breadcrumbs'>Home &gt; Timetables</div><div class='c1'>"
        after = f"</div><div class='sidebar'>Most read<ul>{links}</ul></div>"
        after += f"<div class='footer'>{foot}</div>"
    page = f"<head><title>Gazette</title></head><body>{before}{html(document)}{after}</body>"
    return f"<!doctype html><html>{page}</html>".encode()


def html(document: Sequence[Part]) -> str:
    """The parts as HTML."""
    texts = []
    for part in document:
        if part.kind == "table":
            rows = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in part.rows]
            texts.append("<table>" + "".join(f"<tr>{row}</tr>" for row in rows) + "</table>")
        elif part.kind in ("ul", "ol"):
            items = "".join(f"<li>{escape(item)}</li>" for item in part.items)
            texts.append(f"<{part.kind}>{items}</{part.kind}>")
        else:
            texts.append(f"<{part.kind}>{escape(part.text)}</{part.kind}>")
    return "".join(texts)


def _word(document: Sequence[Part]) -> bytes:
    """The parts as a Word file with a head and a foot."""
    texts: list[str | Rows] = []
    for part in document:
        is_list = part.kind in ("ul", "ol")
        lines = part.markdown().split("\n") if is_list else [part.markdown()]
        texts += [part.rows] if part.kind == "table" else lines
    return word(*texts, head="Commission of Bridges", foot="Page 1, confidential")


def book(document: Sequence[Part]) -> bytes:
    """The parts as an EPUB, a chapter per heading of the second level, after a page of contents."""
    chapters: list[list[Part]] = [[]]
    for part in document:
        chapters += [[]] if part.kind == "h2" and chapters[-1] else []
        chapters[-1].append(part)
    pages = {f"c{n}.xhtml": html(chapter) for n, chapter in enumerate(chapters)}
    links = "".join(f'<p><a href="{name}">Go to chapter {name}</a></p>' for name in pages)
    return epub({"contents.xhtml": f"<h1>Contents</h1>{links}", **pages})


REPORT = {2: Part("table", rows=TABLE), 6: Part("ul", items=LIST), 12: Part("ol", items=LIST)}
TABLES = {3: Part("table", rows=WIDE), 9: Part("table", rows=TABLE), 15: Part("table", rows=WIDE)}


@cache
def known_documents() -> tuple[Known, ...]:
    """The twelve."""
    report, tables = parts(0, 40, 6, REPORT), parts(10, 24, 5, TABLES)
    novel, article, letter = parts(20, 60, 12), parts(40, 44, 7, {5: REPORT[2]}), parts(5, 9, 20)
    gazette = ("Railway Gazette", "Timetables", "Tickets and Fares", "Most read", "cookies")
    heads = ("Commission of Bridges", "Report of the Year", "of 12")
    contents = ("Go to chapter", "Contents")
    word_heads = ("Commission of Bridges", "confidential")
    matter = "---\ntitle: Owl Creek\nauthor: [A. Bierce, W. Irving]\ndate: 1893-05-01\n---\n\n"
    text = matter + "\n\n".join(part.markdown() for part in report)
    files = {
        "report.pdf": (report, pdf(report, Layout(draw=_report_edges)), heads),
        "article.pdf": (article, pdf(article, Layout(columns=2, size=9, draw=_article_edges)),
                        ("Journal of Crossings", "Draft, not for")),
        "tables.pdf": (tables, pdf(tables, Layout(is_justified=False, draw=_report_edges)), heads),
        "novel.pdf": (novel, pdf(novel, Layout(size=11, indent=15, gap=0, draw=_book_edges)),
                      ("OWL CREEK ANNUAL", "In the Glen")),
        "letter.pdf": (letter, pdf(letter, Layout(is_justified=False, gap=10, draw=_letter_edges)),
                       ("- 1 -",)),
        "novel.epub": (novel, book(novel), contents),
        "report.epub": (report, book(report), contents),
        "report.docx": (report, _word(report), word_heads),
        "tables.docx": (tables, _word(tables), word_heads),
        "article.html": (report, _web(report, is_semantic=True), gazette),
        "tables.html": (tables, _web(tables, is_semantic=False), gazette),
        "report.md": (report, text.encode(), ("title:", "author:")),
    }  # fmt: skip
    return tuple(Known(name, content, document, beside)
                 for name, (document, content, beside) in files.items())  # fmt: skip
