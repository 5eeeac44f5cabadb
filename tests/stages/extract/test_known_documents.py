"""Twelve documents of known text: what is read of it, whole, and nothing of heads, feet and
navigation."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from reportlab.pdfgen.canvas import Canvas
from upath import UPath

from stages.corpora.own.text_files import text_of_file
from stages.extract.isolated import Extractor
from stages.extract.pdf import pdf_text
from tests.support.texts.known_documents import (
    LIST,
    TABLE,
    WIDE,
    Layout,
    Part,
    known_documents,
    parts,
    pdf,
)


@pytest.fixture(scope="module")
def extractor() -> Iterator[Extractor]:
    with Extractor() as process:
        yield process


@pytest.mark.parametrize("name", [known.name for known in known_documents()])
def test_the_bounds_that_docs_state(tmp_path: Path, extractor: Extractor, name: str) -> None:
    """Hardly a paragraph is broken, or is a head, a foot or navigation; tables are whole, and what
    occurs once is in order."""
    known = next(known for known in known_documents() if known.name == name)
    (tmp_path / name).write_bytes(known.content)
    paragraphs = text_of_file(UPath(tmp_path / name), extractor).text.split("\n\n")
    read = {" ".join(paragraph.split()) for paragraph in paragraphs}
    whole = [part.markdown() for part in known.parts]
    texts = [part.markdown() for part in known.parts if part.kind != "table"]
    broken = [text for text in texts if " ".join(text.split()) not in read]
    assert len(broken) < 0.01 * len(texts), broken
    beside = [paragraph for paragraph in paragraphs
              if any(words in paragraph for words in known.beside)]  # fmt: skip
    assert len(beside) < 0.01 * len(paragraphs), beside
    assert len(paragraphs) <= 1.01 * len(known.parts)
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
        indent = rng.choice([0, 0, 15, 12])
        layout = Layout(
            columns=rng.choice([1, 1, 2]), size=rng.choice([8, 9, 10, 11, 12]), indent=indent,
            gap=0 if indent else rng.choice([4, 6, 10]), is_justified=rng.random() < 0.6,
            has_rules=rng.random() < 0.5, draw=alternating_edges,
        )  # fmt: skip
        table = Part("table", rows=rng.choice([TABLE, WIDE]))
        items = Part(rng.choice(["ul", "ol"]), items=LIST)
        extra = {rng.randrange(30): table, rng.randrange(30): items}
        document = parts(rng.randrange(100), rng.randrange(10, 50), rng.randrange(3, 12), extra)
        read = pdf_text(pdf(document, layout)).text.split("\n\n")
        plain = {" ".join(paragraph.split()) for paragraph in read}
        texts = [part.markdown() for part in document if part.kind != "table"]
        tables = [part.markdown() for part in document if part.kind == "table" and layout.has_rules]
        num_parts += len(texts)
        num_broken += sum(" ".join(text.split()) not in plain for text in texts)
        num_read += len(read)
        num_beside += sum(text.startswith(("Annual ", "Part ")) for text in read)
        num_tables += len(tables)
        num_whole += sum(table in read for table in tables)
    assert num_parts > 1500 and num_tables > 15
    assert num_broken < 0.01 * num_parts and num_beside < 0.01 * num_read
    assert num_whole >= 0.75 * num_tables


def alternating_edges(canvas: Canvas, page: int) -> None:
    canvas.setFont("Helvetica", 8)
    canvas.drawString(72, 805, "Annual Report" if page % 2 else "Annual Review")
    canvas.drawRightString(523, 805, f"Part {page // 3}")
    canvas.drawCentredString(297, 40, str(page))
