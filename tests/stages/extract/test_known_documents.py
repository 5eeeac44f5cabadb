"""Twelve documents of known text, laid out as such files are: all of it is read, whole, and nothing
of heads, feet and navigation. The paragraphs are of three old stories; the rest is ours."""

import io
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from typing import Any

import pytest
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
    Table,
    TableStyle,
)

from stages.corpora.formats.narrativeqa import story as cut_story
from stages.corpora.own.text_files import without_front_matter
from stages.extract.isolated import Extractor
from stages.extract.pdf import pdf_text
from tests.support.texts.documents import epub, word
from tests.support.texts.loading import DATA


@dataclass(frozen=True)
class Part:
    """A heading (h1, h2), a paragraph (p), the items of a list (ul, ol), or the rows of a table."""

    kind: str
    text: str = ""
    items: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()

    def markdown(self) -> str:
        """As the text of the document has to have it."""
        if self.kind == "table":
            head, *rows = ("| " + " | ".join(row) + " |" for row in self.rows)
            return "\n".join([head, "|" + " --- |" * len(self.rows[0]), *rows])
        if self.items:
            marks = [f"{n}." if self.kind == "ol" else "-" for n in range(1, len(self.items) + 1)]
            return "\n".join(map(" ".join, zip(marks, self.items, strict=True)))
        return {"h1": "# ", "h2": "## ", "p": ""}[self.kind] + self.text

    def html(self) -> str:
        texts = self.items or self.rows
        if not texts:
            return f"<{self.kind}>{escape(self.text)}</{self.kind}>"
        inner = (f"<li>{escape(item)}</li>" for item in self.items) if self.items else (
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
            for row in self.rows
        )  # fmt: skip
        return f"<{self.kind}>{''.join(inner)}</{self.kind}>"


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


def parts(first: int, num: int, every: int, extra: Mapping[int, Part] | None = None) -> list[Part]:
    """`num` paragraphs of the stories from `first` on, a heading before every so many; `extra`:
    parts after a paragraph, by its place."""
    document = [Part("h1", "An Account of Owl Creek")]
    for place in range(num):
        if place % every == 0:
            document.append(Part("h2", HEADINGS[place // every % len(HEADINGS)]))
        document.append(Part("p", story()[(first + place) % len(story())]))
        document += [extra[place]] if extra and place in extra else []
    return document


# How a text is drawn in a PDF's head or foot, its place in points, and the text.
Edge = tuple[Callable[..., None], float, float, str]
LEFT, CENTRE, RIGHT = Canvas.drawString, Canvas.drawCentredString, Canvas.drawRightString


def of_report(page: int) -> list[Edge]:
    return [(LEFT, 72, 800, "Commission of Bridges"), (RIGHT, 523, 800, "Report of the Year"),
            (CENTRE, 297, 40, f"Page {page} of 12")]  # fmt: skip


def of_book(page: int) -> list[Edge]:
    """No head on the first page; then the book's on even pages, the chapter's on odd ones."""
    if page == 1:
        return [(CENTRE, 297, 40, "9")]
    if page % 2 == 0:
        return [(LEFT, 72, 795, f"{page + 8}    THE OWL CREEK ANNUAL")]
    return [(RIGHT, 523, 795, f"Chapter {page // 4 + 1}: In the Glen    {page + 8}")]


def of_article(page: int) -> list[Edge]:
    head, foot = "Journal of Crossings, vol. 12, no. 3 (1893)", "Draft, not for circulation"
    return [(CENTRE, 297, 800, head), (CENTRE, 297, 45, str(300 + page)), (LEFT, 72, 45, foot)]


def alternating(page: int) -> list[Edge]:
    return [(LEFT, 72, 805, "Annual Report" if page % 2 else "Annual Review"),
            (RIGHT, 523, 805, f"Part {page // 3}"), (CENTRE, 297, 40, str(page))]  # fmt: skip


def pdf(
    document: Sequence[Part],
    edges: Callable[[int], list[Edge]],
    font: tuple[str, float] = ("Helvetica", 8),
    columns: int = 1,
    size: float = 10,
    indent: float = 0,
    gap: float = 6,
    is_justified: bool = True,
    has_rules: bool = True,
) -> bytes:
    """The parts set on pages of A4; sizes in points. `edges`: the heads and feet of a page, given
    its number, in the font."""
    text: dict[str, Any] = {"fontName": "Times-Roman", "fontSize": size, "leading": size * 1.2,
                            "alignment": 4 if is_justified else 0}  # fmt: skip
    styles = {
        "p": ParagraphStyle("p", **text, firstLineIndent=indent, spaceAfter=gap),
        "li": ParagraphStyle("li", **text, leftIndent=18, bulletIndent=4, spaceAfter=3),
        **{name: ParagraphStyle(name, fontName="Helvetica-Bold", fontSize=tall, leading=tall * 1.2,
                                spaceBefore=8, spaceAfter=6, keepWithNext=1)
           for name, tall in (("h1", 20), ("h2", 14))},
    }  # fmt: skip
    flow = list[Flowable]()
    for part in document:
        if part.kind == "table":
            rules = [("GRID", (0, 0), (-1, -1), 0.5, colors.black)] if has_rules else []
            flow += [Spacer(1, 6), Table(part.rows, style=TableStyle(rules)), Spacer(1, 8)]
        elif part.items:
            for number, item in enumerate(part.items, 1):
                marker = "\u2022" if part.kind == "ul" else f"{number}."
                flow.append(Paragraph(escape(item), styles["li"], bulletText=marker))
        else:
            flow.append(Paragraph(escape(part.text), styles[part.kind]))
    width, height = A4
    column = (width - 144 - 18 * (columns - 1)) / columns
    frames = [Frame(72 + n * (column + 18), 72, column, height - 144, 0, 0, 0, 0)
              for n in range(columns)]  # fmt: skip

    def draw(canvas: Canvas, template: BaseDocTemplate) -> None:
        canvas.setFont(*font)
        for draw_text, x, y, words in edges(template.page):
            draw_text(canvas, x, y, words)

    file = io.BytesIO()
    template = BaseDocTemplate(file, pagesize=A4, invariant=1)
    template.addPageTemplates(PageTemplate(frames=frames, onPage=draw))
    template.build(flow)
    return file.getvalue()


# Pages with the text and lists of links in them.
SEMANTIC = """<header><a href='/'>The Railway Gazette</a></header><nav>LINKS</nav>
<main><article>TEXT</article></main><aside><h4>Most read</h4>LINKS</aside>
<footer>Printed by the Railway Gazette, all rights reserved</footer>"""
BY_CLASSES = """<div id='cookie-notice'>We use cookies. <button>Accept</button></div>
<div class='site-header'><b>The Railway Gazette</b></div><div>LINKS</div>
<div class='breadcrumbs'>Home &gt; Timetables</div><div class='c1'>TEXT</div>
<div class='sidebar'>Most readLINKS</div>
<div class='footer'>Printed by the Railway Gazette, all rights reserved</div>"""


def web(document: Sequence[Part], page: str) -> bytes:
    names = ("Home", "Timetables", "Tickets and Fares")
    links = "".join(f'<li><a href="/{name}">{name}</a></li>' for name in names)
    text = "".join(part.html() for part in document)
    body = page.replace("LINKS", f"<ul>{links}</ul>").replace("TEXT", text)
    head = "<head><title>Gazette</title></head>"
    return f"<!doctype html><html>{head}<body>{body}</body></html>".encode()


def docx(document: Sequence[Part]) -> bytes:
    """The parts as a Word file with a head and a foot."""
    texts: list[Any] = []
    for part in document:
        lines = part.markdown().split("\n") if part.items else [part.markdown()]
        texts += [part.rows] if part.kind == "table" else lines
    return word(*texts, head="Commission of Bridges", foot="Page 1, confidential")


def book(document: Sequence[Part]) -> bytes:
    """The parts as an EPUB, a chapter per heading of the second level, after a page of contents."""
    chapters: list[list[Part]] = [[]]
    for part in document:
        chapters += [[]] if part.kind == "h2" and chapters[-1] else []
        chapters[-1].append(part)
    pages = {f"c{n}.xhtml": "".join(part.html() for part in chapter)
             for n, chapter in enumerate(chapters)}  # fmt: skip
    links = "".join(f'<p><a href="{name}">Go to chapter {name}</a></p>' for name in pages)
    return epub({"contents.xhtml": f"<h1>Contents</h1>{links}", **pages})


@cache
def known_documents() -> dict[str, tuple[list[Part], bytes, tuple[str, ...]]]:
    """By file name the parts, the content, and words of its heads, feet and navigation."""
    posts, wide = Part("table", rows=TABLE), Part("table", rows=WIDE)
    report = parts(0, 40, 6, {2: posts, 6: Part("ul", items=LIST), 12: Part("ol", items=LIST)})
    tables = parts(10, 24, 5, {3: wide, 9: posts, 15: wide})
    novel, article, letter = parts(20, 60, 12), parts(40, 44, 7, {5: posts}), parts(5, 9, 20)
    gazette = ("Railway Gazette", "Timetables", "Tickets and Fares", "Most read", "cookies")
    heads = ("Commission of Bridges", "Report of the Year", "of 12")
    contents, word_heads = ("Go to chapter", "Contents"), ("Commission of Bridges", "confidential")
    text = "---\ntitle: Owl Creek\nauthor: [A. Bierce, W. Irving]\ndate: 1893-05-01\n---\n\n"
    text += "\n\n".join(part.markdown() for part in report)
    return {
        "report.pdf": (report, pdf(report, of_report), heads),
        "article.pdf": (article, pdf(article, of_article, ("Times-Roman", 8), columns=2, size=9),
                        ("Journal of Crossings", "Draft, not for")),
        "tables.pdf": (tables, pdf(tables, of_report, is_justified=False), heads),
        "novel.pdf": (novel, pdf(novel, of_book, ("Times-Italic", 9), size=11, indent=15, gap=0),
                      ("OWL CREEK ANNUAL", "In the Glen")),
        "letter.pdf": (letter, pdf(letter, lambda page: [(RIGHT, 523, 40, f"- {page} -")],
                                   ("Courier", 9), is_justified=False, gap=10), ("- 1 -",)),
        "novel.epub": (novel, book(novel), contents),
        "report.epub": (report, book(report), contents),
        "report.docx": (report, docx(report), word_heads),
        "tables.docx": (tables, docx(tables), word_heads),
        "article.html": (report, web(report, SEMANTIC), gazette),
        "tables.html": (tables, web(tables, BY_CLASSES), gazette),
        "report.md": (report, text.encode(), ("title:", "author:")),
    }  # fmt: skip


@pytest.fixture(scope="module")
def extractor() -> Iterator[Extractor]:
    with Extractor() as process:
        yield process


@pytest.mark.parametrize("name", known_documents())
def test_the_bounds_that_docs_state(extractor: Extractor, name: str) -> None:
    """Hardly a paragraph is broken, or is a head, a foot or navigation; tables are whole, and what
    occurs once is in order."""
    known, content, words_beside = known_documents()[name]
    kind = name.partition(".")[2]
    if kind == "md":
        paragraphs = without_front_matter(content.decode()).text.split("\n\n")
    else:
        paragraphs = extractor.extract(kind, content).text.split("\n\n")
    read = {" ".join(paragraph.split()) for paragraph in paragraphs}
    whole = [part.markdown() for part in known]
    texts = [part.markdown() for part in known if part.kind != "table"]
    broken = [text for text in texts if " ".join(text.split()) not in read]
    assert len(broken) < 0.01 * len(texts), broken
    beside = [text for text in paragraphs if any(words in text for words in words_beside)]
    assert len(beside) < 0.01 * len(paragraphs), beside
    assert len(paragraphs) <= 1.01 * len(known)
    assert {*whole} - {*texts} <= {*paragraphs}
    once = [text for text in whole if whole.count(text) == paragraphs.count(text) == 1]
    assert len(once) > 0.5 * len({*whole}) and sorted(once, key=paragraphs.index) == once


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_pdfs_in_random_layouts(seed: int) -> None:
    """Of 60 documents: the bounds of the twelve, and most tables with rules; a page may cut one."""
    rng = random.Random(seed)
    num_parts = num_broken = num_read = num_beside = num_tables = num_whole = 0
    for _ in range(60):
        layout: dict[str, Any] = {"indent": rng.choice([0, 0, 15, 12])}
        layout["columns"], layout["size"] = rng.choice([1, 1, 2]), rng.choice([8, 9, 10, 11, 12])
        layout["gap"] = 0 if layout["indent"] else rng.choice([4, 6, 10])
        layout["is_justified"], layout["has_rules"] = rng.random() < 0.6, rng.random() < 0.5
        table = Part("table", rows=rng.choice([TABLE, WIDE]))
        items = Part(rng.choice(["ul", "ol"]), items=LIST)
        extra = {rng.randrange(30): table, rng.randrange(30): items}
        document = parts(rng.randrange(100), rng.randrange(10, 50), rng.randrange(3, 12), extra)
        read = pdf_text(pdf(document, alternating, **layout)).text.split("\n\n")
        plain = {" ".join(paragraph.split()) for paragraph in read}
        texts = [part.markdown() for part in document if part.kind != "table"]
        has_tables = layout["has_rules"]
        tables = [part.markdown() for part in document if part.kind == "table" and has_tables]
        num_parts += len(texts)
        num_broken += sum(" ".join(text.split()) not in plain for text in texts)
        num_read += len(read)
        num_beside += sum(text.startswith(("Annual ", "Part ")) for text in read)
        num_tables += len(tables)
        num_whole += sum(table in read for table in tables)
    assert num_parts > 1500 and num_tables > 15
    assert num_broken < 0.01 * num_parts and num_beside < 0.01 * num_read
    assert num_whole >= 0.75 * num_tables
