"""Twelve documents of known text: what is read of it, whole, and nothing of heads, feet and
navigation."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from upath import UPath

from stages.corpora.reading.document_files import text_of_file
from stages.extract.isolated import Extractor
from tests.support.texts.known_documents import (
    Known,
    known_documents,
)

NAMES = [known.name for known in known_documents()]


@pytest.fixture(scope="module")
def extractor() -> Iterator[Extractor]:
    with Extractor() as made:
        yield made


@pytest.fixture(params=NAMES)
def known(request: pytest.FixtureRequest) -> Known:
    return next(known for known in known_documents() if known.name == request.param)


@pytest.fixture
def paragraphs(known: Known, extractor: Extractor, tmp_path: Path) -> list[str]:
    """What is read, cut at blank lines."""
    file = UPath(tmp_path / known.name)
    file.write_bytes(known.content)
    return text_of_file(file, extractor).text.split("\n\n")


def test_the_bounds_that_docs_state(known: Known, paragraphs: list[str]) -> None:
    """Hardly a paragraph is broken, or is a head, a foot or navigation; tables are whole, and what
    occurs once is in order."""
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
