"""Texts of PDF, EPUB and Word files and of web pages, against what was written into them."""

import os
import pickle
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Timer

import pytest

from stages.extract import child, isolated
from stages.extract.epub import epub_text
from stages.extract.extracted import Extracted, UnreadableError
from stages.extract.isolated import Extractor
from stages.extract.web import web_text
from stages.extract.word import word_text
from tests.support.command import ROOT
from tests.support.texts.documents import epub, pdf, scan, two_columns, word, word_of, zipped

LINES = ["The keeper climbed the tower every evening at six and", "carried oil in a tin can."]


@pytest.fixture(scope="module")
def extractor() -> Iterator[Extractor]:
    with Extractor() as made:
        yield made


def unreadable(extractor: Extractor, kind: str, content: bytes) -> str:
    with pytest.raises(UnreadableError) as caught:
        extractor.extract(kind, content)
    return str(caught.value)


# PDF.


def test_paragraphs_of_a_pdf_are_cut_at_gaps_indents_and_headings(extractor: Extractor) -> None:
    page = ["# The Tower", *LINES, "", "On the ninth of March", "the stairs gave way.",
            "  He waited two nights until", "the baker came."]  # fmt: skip
    assert extractor.extract("pdf", pdf(page)).text == (
        "# The Tower\n\n"
        "The keeper climbed the tower every evening at six and carried oil in a tin can.\n\n"
        "On the ninth of March the stairs gave way.\n\n"
        "He waited two nights until the baker came."
    )


def test_a_sentence_goes_on_over_the_end_of_a_page_or_column(extractor: Extractor) -> None:
    pages = (["Of one", "day.", "", "The keeper climbed"], ["the tower."], ["Then he", "rested."])
    assert extractor.extract("pdf", pdf(*pages)).text == (
        "Of one day.\n\nThe keeper climbed the tower.\n\nThen he rested."
    )
    columns = two_columns(["One line here and", "another that stops"], ["in its midst.", "Last."])
    assert extractor.extract("pdf", columns).text == (
        "One line here and another that stops in its midst. Last."
    )


def test_words_cut_at_a_line_end_are_whole(extractor: Extractor) -> None:
    page = ["The stairs had been under exten-", "sive repair, he said."]
    assert extractor.extract("pdf", pdf(page)).text.split() == (
        ["The", "stairs", "had", "been", "under", "extensive", "repair,", "he", "said."]
    )


def test_a_pdf_without_text_is_a_scan_and_pages_without_text_are_named(
    extractor: Extractor,
) -> None:
    assert unreadable(extractor, "pdf", scan(3)).startswith("no text in the 3 pages of this PDF")
    mixed = pdf(["One."], [], ["Two."], [])
    assert extractor.extract("pdf", mixed) == Extracted(
        "One.\n\nTwo.", "no text in 2 of 4 pages (2, 4)"
    )


def test_encrypted_and_torn_pdfs(extractor: Extractor) -> None:
    said = "an encrypted PDF; save it without a password"
    assert unreadable(extractor, "pdf", pdf(LINES, password="secret")) == said
    assert unreadable(extractor, "pdf", pdf(LINES)[:100]).startswith("damaged, or no PDF (")
    assert unreadable(extractor, "pdf", b"").startswith("damaged, or no PDF (")
    assert extractor.extract("pdf", pdf(LINES)).text == " ".join(LINES)  # it goes on


# Word.


def test_a_word_file_has_headings_paragraphs_and_tables(extractor: Extractor) -> None:
    content = word("# The Tower", *LINES, [["what", "why"], ["oil", "light"]], "", "The end.")
    assert extractor.extract("docx", content).text.split("\n\n") == [
        "# The Tower", *LINES, "| what | why |\n| --- | --- |\n| oil | light |", "The end.",
    ]  # fmt: skip


def test_what_is_no_word_file(extractor: Extractor) -> None:
    assert unreadable(extractor, "docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1").startswith(
        "no Word file but an old Word file, or an encrypted one; "
    )
    assert unreadable(extractor, "docx", word("One.")[:500]).startswith("damaged, or no Word file")
    assert unreadable(extractor, "docx", zipped({"a": "b"})).startswith("a zip archive, no Word")
    assert unreadable(extractor, "docx", word()).startswith("no text in this Word file")
    broken = zipped({"word/document.xml": "<a>", "[Content_Types].xml": "<b/>"})
    assert unreadable(extractor, "docx", broken).startswith("damaged (")  # its library raises


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
    made = word_of(f"{{run:He called.}}<w:r>{inside}</w:r>", "{run:So it was.}")
    assert word_text(made) == Extracted("He called.\n\nAhoy.\n\nLand.\n\nSo it was.")


@pytest.mark.parametrize(
    ("equation", "line"),
    [
        ("<m:f><m:num>{E:a+b}</m:num><m:den>{E:2}</m:den></m:f>{E:=c}", "(a+b)/2=c"),
        ("<m:sSup><m:e>{E:x}</m:e><m:sup>{E:10}</m:sup></m:sSup>", "x^10"),
        ("<m:sSubSup><m:e>{E:x}</m:e><m:sub>{E:i}</m:sub><m:sup>{E:n+1}</m:sup></m:sSubSup>",
         "x_i^(n+1)"),
        ("<m:rad><m:deg/><m:e>{E:x}</m:e></m:rad>", "√(x)"),
        ("<m:nary><m:naryPr><m:chr m:val='∑'/></m:naryPr><m:sub>{E:i=1}</m:sub><m:sup>{E:n}</m:sup>"
         "<m:e>{E:i}</m:e></m:nary>", "∑_(i=1)^n i"),
        ("<m:d><m:dPr><m:begChr m:val='['/></m:dPr><m:e>{E:a}</m:e><m:e>{E:b}</m:e></m:d>",
         "[a|b)"),
        ("<m:m><m:mr><m:e>{E:1}</m:e><m:e>{E:0}</m:e></m:mr><m:mr><m:e>{E:0}</m:e><m:e>{E:1}</m:e>"
         "</m:mr></m:m>", "1, 0; 0, 1"),
        ("<m:eqArr><m:e>{E:x}</m:e><m:e>{E:y}</m:e></m:eqArr>", "x; y"),
    ],
)  # fmt: skip
def test_equations_are_text(equation: str, line: str) -> None:
    inline = f"<m:oMath>{equation}</m:oMath>"
    display = f"<m:oMathPara>{inline}</m:oMathPara>"
    made = word_of(f"{{run:It is}}{inline}{{run:today.}}", display)
    assert word_text(made) == Extracted(f"It is {line} today.\n\n{line}")


def test_what_of_a_word_file_has_no_text_is_named_and_ruby_is_read() -> None:
    ruby = ("<w:r><w:ruby><w:rt>{run:kan}</w:rt><w:rubyBase>{run:\u6f22}</w:rubyBase></w:ruby>"
            "</w:r>")  # fmt: skip
    objects = "<w:object><o:OLEObject ProgID='Equation.3'/></w:object>" * 2
    made = word_of(f"{ruby}<w:r>{objects}<w:drawing><c:chart/></w:drawing></w:r>")
    assert word_text(made) == Extracted("\u6f22", "not read: embedded Equation.3: 2, chart: 1")


# EPUB.

CHAPTERS = {"b.xhtml": "<h1>Two</h1><p>The  baker<br/>came.</p>", "a%20b.xhtml": "<p>Caf&#233;</p>",
            "c.xhtml": "<p>Three.</p>"}  # fmt: skip


def test_an_epub_is_read_in_the_order_of_its_spine(extractor: Extractor) -> None:
    chapters = {"b.xhtml": CHAPTERS["b.xhtml"], "c.xhtml": CHAPTERS["c.xhtml"]}
    found = extractor.extract("epub", epub(chapters, ["c.xhtml", "b.xhtml"]))
    assert found == Extracted("Three.\n\n# Two\n\nThe baker\ncame.")


def test_a_chapter_that_the_spine_names_again_is_read_once(extractor: Extractor) -> None:
    """2 KB that named one page 30,000 times took 90 seconds."""
    book = epub({"a.xhtml": "<p>A</p>", "b.xhtml": "<p>B</p>"}, ["b.xhtml", "a.xhtml"] * 30_000)
    assert extractor.extract("epub", book) == Extracted("B\n\nA")


def test_names_of_chapters_are_decoded(extractor: Extractor) -> None:
    book = epub({"a%20b.xhtml": ""}, more={"OEBPS/a b.xhtml": "<p>Caf&#233;</p>"})
    assert extractor.extract("epub", book) == Extracted("Café")


@pytest.mark.parametrize(
    ("href", "name"),
    [
        ("one.xhtml#start", "OEBPS/one.xhtml"),
        ("one.xhtml?a=1#start", "OEBPS/one.xhtml"),
        ("one%20.xhtml", "OEBPS/one .xhtml"),
        ("one%20.xhtml", "OEBPS/one%20.xhtml"),
        ("one%2520.xhtml", "OEBPS/one%20.xhtml"),
        ("one .xhtml", "OEBPS/one%20.xhtml"),
        ("one%231.xhtml", "OEBPS/one#1.xhtml"),
        ("one#1.xhtml", "OEBPS/one#1.xhtml"),
        ("ONE.xhtml", "oebps/One.XHTML"),
        ("Text\\one.xhtml", "OEBPS/Text/one.xhtml"),
        ("Text/one.xhtml", "OEBPS\\Text\\one.xhtml"),
        ("../OEBPS/./one.xhtml", "./OEBPS/one.xhtml"),
        ("/OEBPS/one.xhtml", "OEBPS/one.xhtml"),
        (" one.xhtml ", "OEBPS/one.xhtml"),
        ("zo%C3%AB.xhtml", "OEBPS/zoe\u0308.xhtml"),
        ("\u0433\u043b.xhtml", "OEBPS/\u0433\u043b.xhtml"),
    ],
)
@pytest.mark.parametrize("folder", ["", "book.epub/", "B\u00fccher/1\\"])
def test_chapters_are_found_whatever_links_are_like(href: str, name: str, folder: str) -> None:
    """Chapter two comes first by name; names are UTF-8 with or without saying so."""
    book = epub({href: "", "a.xhtml": "<p>Two.</p>"}, more={
        f"OEBPS/{href}": None, name: "<title/><p>One.</p>"}, folder=folder)  # fmt: skip
    assert epub_text(book) == Extracted("One.\n\nTwo.")
    assert epub_text(without_utf_8_flags(book)) == Extracted("One.\n\nTwo.")


def without_utf_8_flags(archive: bytes) -> bytes:
    made = bytearray(archive)
    for found in re.finditer(rb"PK\x03\x04|PK\x01\x02", archive):
        made[found.end() + (3 if found[0].endswith(b"\x04") else 5)] &= 0xF7
    return bytes(made)


def test_an_epub_with_a_broken_spine(extractor: Extractor) -> None:
    chapters = {"b.xhtml": "<p>B</p>", "a.xhtml": "<p>A</p>"}
    gone = epub(chapters, more={"OEBPS/book.opf": (
        '<package><manifest><item id="x" href="gone.xhtml"/><item id="y" href="b.xhtml"/>'
        '</manifest><spine><itemref idref="x"/><itemref idref="y"/><itemref idref="z"/></spine>'
        "</package>")})  # fmt: skip
    assert extractor.extract("epub", gone) == Extracted("B", "not in the archive: OEBPS/gone.xhtml")
    unordered = Extracted("A\n\nB", "no order of chapters in it, read by name")
    for wrong in ("<package>", "<package/>", ""):
        book = epub(chapters, more={"OEBPS/book.opf": wrong})
        assert extractor.extract("epub", book) == unordered
    lost = epub(chapters, more={"META-INF/container.xml": "no XML"})
    assert extractor.extract("epub", lost) == Extracted("B\n\nA")  # by the .opf itself


def test_chapters_that_cannot_be_read_are_named_with_the_reason(extractor: Extractor) -> None:
    lock = ('<encryption><EncryptedData><CipherData><CipherReference URI="OEBPS/b.xhtml"/>'
            "</CipherData></EncryptedData></encryption>")  # fmt: skip
    chapters = {"a.xhtml": "<p>A</p>", "b.xhtml": "<p>B</p>", "c.xhtml": "<p>C</p>"}
    book = epub(chapters, more={"META-INF/encryption.xml": lock})
    before, name, after = book.partition(b"OEBPS/c.xhtml")  # then its content
    torn = before + name + bytes([after[0] ^ 255]) + after[1:]
    assert extractor.extract("epub", torn) == Extracted(
        "A", "encrypted: OEBPS/b.xhtml; damaged: OEBPS/c.xhtml"
    )


def test_a_chapter_that_cannot_be_read_costs_itself() -> None:
    deep = "<div>" * 3000 + "<p>B</p>"
    book = epub({"a.xhtml": "<p>A</p>", "b.xhtml": deep})
    assert epub_text(book) == Extracted(
        "A", "over 1000 elements are within each other: OEBPS/b.xhtml"
    )
    old = "<html><head><meta charset='latin-1'></head><p>\u201cA\u201d</p>".encode("cp1252")
    assert epub_text(epub({"a.xhtml": ""}, more={"OEBPS/a.xhtml": old})).text == "\u201cA\u201d"


def test_what_is_no_epub_and_what_is_encrypted(extractor: Extractor) -> None:
    assert unreadable(extractor, "epub", b"PK\x03\x04torn").startswith("damaged, or no EPUB (")
    assert unreadable(extractor, "epub", zipped({"a.txt": "one"})).startswith(
        "no text in this EPUB"
    )
    lock = ('<encryption><EncryptedData><CipherData><CipherReference URI="OEBPS/a.xhtml"/>'
            "</CipherData></EncryptedData></encryption>")  # fmt: skip
    book = epub({"a.xhtml": "<p>x</p>"}, more={"META-INF/encryption.xml": lock})
    assert unreadable(extractor, "epub", book).startswith("an encrypted EPUB; ")


# What would take all memory or time, and what crashes.


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["epub", "docx"])
def test_a_zip_bomb_is_one_bad_file(extractor: Extractor, kind: str) -> None:
    name = {"epub": "OEBPS/a.xhtml", "docx": "word/document.xml"}[kind]
    bomb = epub({"a.xhtml": ""}, more={name: b" " * (2**27 + 1)})
    assert unreadable(extractor, kind, bomb).startswith("over 128 MiB of text when unpacked")


def test_entities_within_entities_are_not_unfolded(extractor: Extractor) -> None:
    levels = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    opf = f'<!DOCTYPE p [<!ENTITY e0 "lol">{levels}]><package>&e11;</package>'
    book = epub({"a.xhtml": "<p>A</p>"}, more={"OEBPS/book.opf": opf})
    assert extractor.extract("epub", book).text == "A"


def test_a_file_that_takes_too_long_costs_only_itself() -> None:
    with Extractor(seconds=0.01) as hasty:
        said = unreadable(hasty, "pdf", pdf(LINES))
    assert said == "not read within 0 s; fix or delete it"


def test_a_process_that_others_kill_was_not_late(
    extractor: Extractor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the kernel does where memory ends."""

    def killed(seconds: float, kill: Callable[[], None]) -> Timer:
        assert extractor._child
        extractor._child._process.kill()
        return Timer(seconds, kill)

    monkeypatch.setattr(isolated, "Timer", killed)
    said = unreadable(extractor, "epub", epub({"a.xhtml": "<p>A</p>"}))
    assert said.startswith("its process was killed, perhaps for lack of memory; ")


def test_no_code_of_the_current_folder_is_executed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "zipfile.py").write_text("raise SystemExit('executed')")
    monkeypatch.chdir(tmp_path)
    with Extractor() as made:
        assert made.extract("epub", epub({"a.xhtml": "<p>A</p>"})).text == "A"


def test_a_text_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "MOST_BYTES", 5)
    assert child._reply("html", "<p>ééé".encode()) == {
        "wrong": "over 256 MiB in one piece, which no document is; fix or delete it"
    }
    assert child._reply("html", "<p>éé".encode()) == {
        "text": "éé", "missing": None, "metadata": {}, "note": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    "inside", ["<a " * 100_000, "<" * 100_000, "<!--" * 50_000, "<p>" * 50_000]
)
def test_a_web_page_of_what_is_not_closed_is_read_at_once(inside: str) -> None:
    started = time.monotonic()
    assert web_text(f"<p>x</p>{inside}".encode()).text.startswith("x")
    assert time.monotonic() - started < 20


def test_a_crash_costs_one_file(extractor: Extractor) -> None:
    assert unreadable(extractor, "no such kind", b"").startswith("damaged (")
    assert extractor.extract("epub", epub({"a.xhtml": "<p>A</p>"})).text == "A"


def test_a_text_is_the_same_in_every_process() -> None:
    """Units of work are named by it."""
    contents = [("pdf", pdf(LINES, LINES)), ("docx", word("# A", *LINES)), ("epub", epub(CHAPTERS))]
    code = (  # pickle: JSON has no bytes
        "import sys, pickle\nfrom stages.extract.isolated import Extractor\n"
        "with Extractor() as e: print([e.extract(*c) for c in pickle.load(sys.stdin.buffer)])"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code], input=pickle.dumps(contents), check=True, cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True,
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(found) == 1
    assert b"carried oil" in found.pop()


# HTML.

SAID = "Прывет, café 東京"


@pytest.mark.parametrize(
    ("encoding", "head"),
    [
        ("utf-8", ""),
        ("utf-8", '<meta charset="iso-8859-1">'),  # a wrong declaration
        ("utf-8-sig", ""),
        ("utf-16", ""),
        ("windows-1251", '<meta charset="windows-1251">'),
        ("shift_jis", '<meta http-equiv="Content-Type" content="text/html; charset=Shift_JIS">'),
        ("iso-2022-jp", "<meta charset=iso-2022-jp>"),
        ("koi8-r", '<?xml version="1.0" encoding="koi8-r"?>'),
        ("cp1252", ""),
        ("latin-1", "<meta charset=nonsense>"),
    ],
)
def test_html_in_every_encoding(encoding: str, head: str) -> None:
    text = "".join(c for c in SAID if c.encode(encoding, "ignore"))
    page = f"<html><head>{head}</head><body>{text}</body></html>"
    assert web_text(page.encode(encoding)).text == text.strip()
