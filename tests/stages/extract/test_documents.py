"""Texts of web pages, EPUB books and Word files, against what was written into them."""

import re
import time
from collections.abc import Callable

import pytest

from stages.extract import documents
from stages.extract.documents import epub_text, html_tree, web_text, word_text
from stages.extract.extracted import Extracted, UnreadableError
from tests.support.texts.documents import epub, word, word_of, zipped

PROSE = "<h1>The Tower</h1><p>The keeper climbed the tower at six.</p>"
TEXT = f"{PROSE}<ul><li>oil</li><li>bread</li></ul>"
KEPT = "# The Tower\n\nThe keeper climbed the tower at six.\n\n- oil\n- bread"
LINKS = '<ul><li><a href="/">Home</a></li><li><a href="/n">News</a></li></ul>'
INNER = "<table><tr><td>a<td>b<tr><td>c<td>d</table>"
ROWS = "| a | b |\n| --- | --- |\n| c | d |"


def web(html: str) -> str:
    return web_text(html.encode()).text


def markdown(html: str) -> str:
    return documents.markdown(html_tree(html))


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<h1>The <i>Tower</i></h1><p>It\n  stood.<h6>Low<br>er</h6>",
         "# The Tower\n\nIt stood.\n\n###### Low er"),
        ("<p>a<br>b</p><div>c<div>d</div></div><h2></h2>", "a\nb\n\nc\n\nd"),
        ("<ul><li>a<li><p>b</p><p>c</p></ul>d", "- a\n- b\n  c\n\nd"),
        ("<ol start=3><li>a</li><li>b</li></ol>", "3. a\n4. b"),
        ("<ul><li>a<ol><li>b</li><li>c</li></ol>d</li><li>e</li><li></li></ul>",
         "- a\n  1. b\n  2. c\n  d\n- e"),
        ("<pre>a\n  b</pre>", "a\nb"),
        ("<title>T</title><script>x</script><style>y</style>a<template>z</template>", "a"),
        ("<p>a</ul></table></td></li></h1>b", "ab"),  # what was never opened
        ("<p>a \x01\ufdd0\x03b", "a b"),  # characters of no text
        ("<head><title/><script src=a /></head><p>a<i/>b</p>", "ab"),  # XHTML
        ("<p>Wert&shy;papier, <!--[if IE]>old<![endif]-->Mr.&nbsp;X<![if x]>", "Wertpapier, Mr. X"),
        ("<p>a <b> b</b></p><ul><li>c</li></ul><ul><li>d</li></ul>", "a b\n\n- c\n\n- d"),
        ("x<table><thead><tr><td>a<td>b<tbody><tr><td>c<td>d", f"x\n\n{ROWS}"),
        ("<table><caption>Cap</caption><tr><td><p>a</p></td><td>b<br>x|y</td></tr>"
         "<tr><td><ul><li>c</li><li>e</li></ul></td></tr></table>",
         "Cap\n\n| a | b x\\|y |\n| --- | --- |\n| c e |  |"),
        # Tables for the layout are none.
        (f"<table><tr><td>menu</td><td>{INNER}</td></tr></table>", f"menu\n\n{ROWS}"),
        ("<table><tr><td>a</td></tr><tr><td>b</td></tr></table>", "a\n\nb"),
        ("<table><tr><td><h2>a</h2></td><td>x</td></tr><tr><td>b</td><td>y</td></tr></table>",
         "## a\n\nx\n\nb\n\ny"),
    ],
)  # fmt: skip
def test_blocks(html: str, expected: str) -> None:
    assert markdown(html) == expected


@pytest.mark.parametrize(
    "text",
    ["1. He", "# He", "- he", "> he", "a *b* _c_ `d` [e](f) ~g~", "| a |", "***", "He read #",
     "\\(x\\_y\\) \\", "www.a.org :b: $c$", "a &amp;lt; &lt;b&gt; &amp;amp;"],
)  # fmt: skip
def test_text_that_looks_like_markdown_is_as_it_is(text: str) -> None:
    plain = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    assert markdown(f"<p>x<p>{text}<br>{text}") == f"x\n\n{plain}\n{plain}"


def test_cells_that_span_several_leave_the_others_empty() -> None:
    html = ("<table><tr><td colspan=2>a</td><td rowspan=2>b</td></tr>"
            "<tr><td>c</td><td>d</td></tr><tr><td>e<td>f<td>g</table>")  # fmt: skip
    rows = [line.replace(" ", "") for line in markdown(html).splitlines()]
    assert rows == ["|a||b|", "|---|---|---|", "|c|d||", "|e|f|g|"]
    wide = f"<table><tr><td colspan={10**9} rowspan={10**9}>a<tr><td>b<td>c</table>"
    assert len(markdown(wide)) < 2000


def test_what_is_nested_too_deep_is_refused_and_not_lost() -> None:
    assert markdown("<div>" * 800 + "a") == "a"
    for depth in (1100, 20_000):
        with pytest.raises(UnreadableError):
            markdown("<div>" * depth + "a" + "</div>" * depth)


BESIDE = [
    f"<nav>{LINKS}</nav>", f"<header>Gazette {LINKS}</header>", "<footer>Imprint</footer>",
    f"<aside>Most read {LINKS}</aside>", "<div role='banner'>Gazette</div>",
    "<div class='site-header'>Gazette</div>", "<div id=header>Gazette</div>",
    "<div class='cookie-consent'>We use cookies</div>", "<p hidden>Draft</p>", LINKS,
    "<form>Search</form>", "<p><a>Imprint</a> | <a>Privacy</a></p>",
]  # fmt: skip


@pytest.mark.parametrize(
    "html",
    [
        *(f"<body>{beside}<div>{TEXT}</div></body>" for beside in BESIDE),
        *(f"<body>{beside}<main>{TEXT}</main>{beside}</body>" for beside in BESIDE),
        # What only looks so.
        f"<article><header>{TEXT}</header></article>", f"<div class='entry-header'>{TEXT}</div>",
        f"<header id='title-block-header'>{TEXT}</header>",
        f"<body class='has-sidebar nav-open'>{TEXT}</body>",
        f"<section id='social-structure'>{TEXT}</section>",
        f"<main><div class='share'>{TEXT}</div></main>",
        TEXT.replace("<h1>", "<h1 id='navigation' class='nav'>"),
        f"<nav>{TEXT}",  # which has no end
    ],
)  # fmt: skip
def test_what_is_beside_the_text_is_left_out_and_nothing_else(html: str) -> None:
    assert web(html) == KEPT


def test_links_in_the_text_and_pages_of_links_are_text() -> None:
    assert web("<p>He read <a>a letter</a>, and <a>another</a>, and lit the lamp.</p>") == (
        "He read a letter, and another, and lit the lamp."
    )
    assert web(f"<article>{TEXT}{LINKS}</article>") == f"{KEPT}\n\n- Home\n- News"
    assert web("<h2><a href='#top'>The Tower</a></h2><p>It stood.</p>").startswith("## The Tower")
    assert web(f"{TEXT}<aside role='doc-footnote'>1 So it was.</aside>").endswith("1 So it was.")
    links = f"<h1>Links</h1>{LINKS}<p><a>Towers of the coast, and of the inland</a></p>"
    assert web(links).endswith("- News\n\nTowers of the coast, and of the inland")


@pytest.mark.parametrize("inside", ["<a " * 100_000, "<" * 100_000, "<p>" * 50_000])
def test_a_web_page_of_what_is_not_closed_is_read_at_once(inside: str) -> None:
    started = time.monotonic()
    assert web(f"<p>x</p>{inside}").startswith("x")
    assert time.monotonic() - started < 20


CHAPTERS = {"a.xhtml": "<p>A</p>", "b.xhtml": "<p>B</p>", "c.xhtml": "<p>C</p>"}
LOCK = ('<encryption><EncryptedData><CipherData><CipherReference URI="OEBPS/b.xhtml"/>'
        "</CipherData></EncryptedData></encryption>")  # fmt: skip
# Entities within entities, which are not unfolded.
ENTITIES = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
LOL = f'<!DOCTYPE p [<!ENTITY e0 "lol">{ENTITIES}]><package>&e11;</package>'


def test_an_epub_is_read_in_the_order_of_its_spine_each_chapter_once() -> None:
    book = epub(CHAPTERS, ["c.xhtml", "b.xhtml", "a.xhtml"] * 10_000)
    assert epub_text(book) == Extracted("C\n\nB\n\nA")


@pytest.mark.parametrize(
    ("href", "name"),
    [
        ("one.xhtml#start", "OEBPS/one.xhtml"), ("one%20.xhtml", "OEBPS/one .xhtml"),
        ("one .xhtml", "OEBPS/one%20.xhtml"), ("one%231.xhtml", "OEBPS/one#1.xhtml"),
        ("ONE.xhtml", "oebps/One.XHTML"), ("Text\\one.xhtml", "OEBPS/Text/one.xhtml"),
        ("Text/one.xhtml", "OEBPS\\Text\\one.xhtml"),
        ("../OEBPS/./one.xhtml", "./OEBPS/one.xhtml"),
        ("zo%C3%AB.xhtml", "OEBPS/zoe\u0308.xhtml"),
        ("\u0433\u043b.xhtml", "OEBPS/\u0433\u043b.xhtml"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("folder", ["", "book.epub/", "B\u00fccher/1\\"])
def test_chapters_are_found_whatever_links_are_like(href: str, name: str, folder: str) -> None:
    """Chapter two comes first by name; names are UTF-8 with or without saying so."""
    book = epub({href: "", "a.xhtml": "<p>Two.</p>"}, more={
        f"OEBPS/{href}": None, name: "<title/><p>One.</p>"}, folder=folder)  # fmt: skip
    assert epub_text(book) == Extracted("One.\n\nTwo.")
    unsaid = bytearray(book)
    for header in re.finditer(rb"PK\x03\x04|PK\x01\x02", book):
        unsaid[header.end() + (3 if header[0].endswith(b"\x04") else 5)] &= 0xF7
    assert epub_text(bytes(unsaid)) == Extracted("One.\n\nTwo.")


def test_doubts_about_a_chapter_and_names_that_are_no_utf_8() -> None:
    book = epub({"a.xhtml": "<p>A</p>"}, more={
        "OEBPS/a.xhtml": "<p>zwölf</p>".encode() + b"\x96", "12.png": ""})  # fmt: skip
    text = epub_text(book.replace(b"12.png", b"\x81\x82.png"))
    assert text.text.startswith("zwölf") and (text.note or "").startswith("OEBPS/a.xhtml: ")


def opf(*references: str) -> dict[str, str | bytes | None]:
    refs = "".join(f'<itemref idref="{reference}"/>' for reference in references)
    return {"OEBPS/book.opf": '<package><manifest><item id="x" href="gone.xhtml"/><item id="y" '
            f'href="b.xhtml"/></manifest><spine>{refs}</spine></package>'}  # fmt: skip


@pytest.mark.parametrize(
    ("more", "text", "missing"),
    [
        (opf("x", "y", "z"), "B", "not in the archive: OEBPS/gone.xhtml"),
        ({"META-INF/encryption.xml": LOCK}, "A\n\nC", "encrypted: OEBPS/b.xhtml"),
        ({"OEBPS/b.xhtml": "<div>" * 3000 + "<p>B</p>"}, "A\n\nC",
         "over 900 elements are within each other: OEBPS/b.xhtml"),
        ({"OEBPS/b.xhtml": "<meta charset='latin-1'><p>\u201cB\u201d</p>".encode("cp1252")},
         "A\n\n\u201cB\u201d\n\nC", None),
    ],
)  # fmt: skip
def test_what_is_wrong_with_an_epub_costs_itself_and_is_named(
    more: dict[str, str | bytes | None], text: str, missing: str | None
) -> None:
    assert epub_text(epub(CHAPTERS, more=more)) == Extracted(text, missing)


def test_a_damaged_chapter_is_named_and_a_page_of_contents_is_left_out() -> None:
    before, name, content = epub(CHAPTERS).partition(b"OEBPS/c.xhtml")
    torn = before + name + bytes([content[0] ^ 255]) + content[1:]
    assert epub_text(torn) == Extracted("A\n\nB", "damaged: OEBPS/c.xhtml")
    links = "".join(f'<p><a href="c{n}.xhtml">Chapter {n}</a></p>' for n in range(3))
    book = epub({"a.xhtml": f"<h1>Contents</h1>{links}", "b.xhtml": f"<nav>{links}</nav>{TEXT}",
                 "c.xhtml": "<h2><a>Notes</a></h2><p><a>1</a> So it was.</p>"})  # fmt: skip
    assert epub_text(book).text == f"{KEPT}\n\n## Notes\n\n1 So it was."


@pytest.mark.parametrize("read", [epub_text, word_text])
def test_what_is_none(read: Callable[[bytes], Extracted]) -> None:
    locked = epub({"b.xhtml": "<p>x</p>"}, more={"META-INF/encryption.xml": LOCK})
    unfolds = epub(CHAPTERS, more={"OEBPS/book.opf": LOL})
    no_spine = epub(CHAPTERS, more={"OEBPS/book.opf": "<package>"})
    wrong = [b"PK\x03\x04torn", b"\xd0\xcf\x11\xe0", zipped({"a.txt": "one"}), word(), locked,
             unfolds, no_spine]  # fmt: skip
    for content in wrong:
        with pytest.raises(UnreadableError, match="; "):
            read(content)


TEXT_BOX = "<w:txbxContent><w:p>{run:Ahoy.}</w:p><w:p>{run:Land.}</w:p></w:txbxContent>"
NEW_BOX = f"<w:drawing><wps:txbx>{TEXT_BOX}</wps:txbx></w:drawing>"
OLD_BOX = f"<w:pict><v:shape><v:textbox>{TEXT_BOX}</v:textbox></v:shape></w:pict>"
CHOICE, FALLBACK = "<mc:Choice Requires='wps'>{}</mc:Choice>", "<mc:Fallback>{}</mc:Fallback>"
BOTH = f"<mc:AlternateContent>{CHOICE}{FALLBACK}</mc:AlternateContent>"


@pytest.mark.parametrize(
    "inside",
    [
        OLD_BOX, NEW_BOX, BOTH.format(NEW_BOX, OLD_BOX), BOTH.format("", OLD_BOX),
        f"<mc:AlternateContent>{CHOICE.format(NEW_BOX)}</mc:AlternateContent>",
    ],
)  # fmt: skip
def test_a_text_box_is_read_once_behind_its_paragraph(inside: str) -> None:
    content = word_of(f"{{run:He called.}}<w:r>{inside}</w:r>", "{run:So it was.}")
    assert word_text(content) == Extracted("He called.\n\nAhoy.\n\nLand.\n\nSo it was.")


def test_what_of_a_word_file_has_no_text_is_named_and_ruby_is_read() -> None:
    ruby = ("<w:r><w:ruby><w:rt>{run:kan}</w:rt><w:rubyBase>{run:\u6f22}</w:rubyBase></w:ruby>"
            "</w:r>")  # fmt: skip
    objects = "<w:object><o:OLEObject ProgID='Equation.3'/></w:object>" * 2
    equation = "<m:oMathPara><m:oMath><m:r><m:t>x</m:t></m:r></m:oMath></m:oMathPara>"
    content = word_of(f"{ruby}<w:r>{objects}<w:drawing><c:chart/></w:drawing></w:r>{equation}")
    assert word_text(content) == Extracted(
        "\u6f22", "not read: embedded Equation.3: 2, equation: 1, chart: 1"
    )
