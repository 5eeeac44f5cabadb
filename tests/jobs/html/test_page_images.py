"""Pages of PDFs as images beside their text: in `view`, and the reasons for none."""

import base64
import io
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from reportlab.pdfgen.canvas import Canvas
from upath import UPath

from jobs.config.options import ReadOptions
from jobs.html.site import Site
from stages.extract.extracted import UnreadableError
from stages.extract.isolated import Extractor
from tests.jobs.html.test_html import Served, opened
from tests.jobs.html.test_html_access import violations
from tests.support.command import succeed
from tests.support.docs.browser import Browser

# 29, 24 and 23 characters, and blank lines between: the pages begin at 0, 31 and 57.
LINES = ("The keeper climbed the tower.", "He lit the lamp at dusk.", "Gulls slept on the roof")
EVIDENCE = "#question=q&tab=evidence"
RED, GREEN, BLUE = (255, 0, 0), (0, 255, 0), (0, 0, 255)


def coloured(*lines: str) -> bytes:
    """A page of A4 (595.28 by 841.89 points) per line, with a square about (300, 200) in red,
    green, blue."""
    made = io.BytesIO()
    canvas = Canvas(made, invariant=1, pagesize=(595.28, 841.89))
    for line, (red, green, blue) in zip(lines, (RED, GREEN, BLUE), strict=False):
        canvas.drawString(72, 700, line)
        canvas.setFillColorRGB(red / 255, green / 255, blue / 255)
        canvas.rect(250, 150, 100, 100, stroke=0, fill=1)
        canvas.showPage()
    canvas.save()
    return made.getvalue()


def colour_of(image: str) -> str:
    """The colour of the square: pages are drawn 900 pixels wide, 1.512 a point."""
    drawn = Image.open(io.BytesIO(base64.b64decode(image)))
    assert drawn.format == "JPEG" and drawn.width == 900 and 1272 <= drawn.height <= 1274
    pixel: Any = drawn.getpixel((round(300 * 1.512), round((841.89 - 200) * 1.512)))
    return ["red", "green", "blue"][max(range(3), key=pixel.__getitem__)]


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    """A run over a PDF and a text, with a question whose evidence is on the PDF's second page."""
    folder = tmp_path / "letters"
    folder.mkdir()
    (folder / "a.pdf").write_bytes(coloured(*LINES))
    (folder / "b.txt").write_text("No PDF.")
    question = {"document_id": "a", "question_id": "q", "question": "When was the lamp lit?",
                "references": ["dusk"],
                "evidence": [{"start_char": 31, "end_char": 55}]}  # fmt: skip
    (folder / "questions.jsonl").write_text(json.dumps(question))
    made = tmp_path / "warehouse"
    succeed("run", "corpus=text", f"corpus.path={folder}", "engine=extractive",
            "methods=bm25(top_k=1)", "rater=none", "memory=uniform", "run=night", "cluster=inline",
            f"warehouse={made}")  # fmt: skip
    return made


@pytest.fixture
def site(warehouse: Path) -> Iterator[Site]:
    with closing(Site(ReadOptions(UPath(warehouse)), "night")) as made:
        yield made


def image(site: Site, name: str) -> Any:
    found = site.get(f"data/image-{name}")
    return found and opened(found[1])


@pytest.mark.slow
def test_a_page_is_drawn_by_its_number(site: Site) -> None:
    assert [colour_of(image(site, f"0-{index}")["image"]) for index in (0, 1, 2)] == [
        "red", "green", "blue",
    ]  # fmt: skip
    for no_page in ("0-3", "1-0", "9-0", "0", "0-0-0", "a-0", "0-x", "0-²"):
        assert image(site, no_page) is None, no_page


@pytest.mark.slow
def test_a_file_that_is_no_longer_what_was_read_gives_a_line(site: Site, tmp_path: Path) -> None:
    file = tmp_path / "letters" / "a.pdf"
    assert "image" in image(site, "0-1")
    file.write_bytes(coloured("The keeper fell.", *LINES[1:]))
    assert image(site, "0-1") == {"why": "a.pdf: has changed since it was read"}
    file.write_bytes(b"%PDF-1.4 torn")
    assert image(site, "0-1")["why"].startswith("a.pdf: damaged, or no PDF (")
    file.unlink()
    assert image(site, "0-1") == {"why": "a.pdf: not there any more"}
    file.write_bytes(coloured(*LINES))
    assert colour_of(image(site, "0-1")["image"]) == "green"


def test_a_folder_that_is_gone_gives_a_line(site: Site, tmp_path: Path) -> None:
    (tmp_path / "letters").rename(tmp_path / "moved")
    assert image(site, "0-1") == {
        "why": "The folder that this PDF was read from is not there any more."
    }


def test_a_page_that_cannot_be_drawn_is_no_crash() -> None:
    with Extractor() as extractor:
        with pytest.raises(UnreadableError, match="page 4 cannot be drawn"):
            extractor.page_image(coloured(*LINES), 3)
        assert colour_of(extractor.page_image(coloured(*LINES), 2)) == "blue"


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
def test_images_stand_beside_the_text(browser: Browser, warehouse: Path, width: int) -> None:
    served = Served(warehouse)
    browser.resize(width)
    browser.open(served.address)
    for view, num in (("#document=a", 3), ("#question=q&tab=memory", 3), (EVIDENCE, 1)):
        browser.go(view)
        browser.run("document.querySelectorAll('main details').forEach((one) => one.open = true)")
        for number in range(num):
            drawn = f"document.querySelectorAll('.page-image')[{number}]"
            browser.wait(f"{drawn}?.scrollIntoView(); "
                         f"return {drawn}?.querySelector('img')?.naturalWidth === 900")  # fmt: skip
        assert len(browser.all(".page-image")) == num
        assert browser.overflow() == 0
        assert violations(browser) == []
    assert browser.texts(".page-images figcaption") == ["Page 2 of the PDF"]
    (alt,) = browser.run(
        "return [...document.querySelectorAll('.page-image img')].map((i) => i.alt)"
    )
    assert alt == "Page 2 of the PDF a; its text stands beside it"
    assert browser.complaints() == []
    served.end()
