"""Twelve documents of known text: what is read of it, whole, and nothing of heads, feet and
navigation."""

from collections.abc import Iterator

import pytest
from upath import UPath

from stages.corpora.reading.file_text import text_of_file
from stages.extract.isolated import Extractor
from tests.support.texts.known_documents import Known, Part, known_documents

NAMES = [known.name for known in known_documents()]


@pytest.fixture(scope="module")
def extractor() -> Iterator[Extractor]:
    with Extractor() as made:
        yield made


@pytest.fixture(params=NAMES)
def known(request: pytest.FixtureRequest) -> Known:
    return next(known for known in known_documents() if known.name == request.param)


@pytest.fixture
def paragraphs(
    known: Known, extractor: Extractor, tmp_path_factory: pytest.TempPathFactory
) -> list[str]:
    """What is read, cut at blank lines."""
    file = UPath(tmp_path_factory.mktemp("known") / known.name)
    file.write_bytes(known.content)
    return text_of_file(file, extractor).text.split("\n\n")


def test_less_than_a_hundredth_of_the_paragraphs_is_broken(
    known: Known, paragraphs: list[str]
) -> None:
    read = {" ".join(paragraph.split()) for paragraph in paragraphs}
    texts = [part.markdown() for part in known.parts if part.kind != "table"]
    broken = [text for text in texts if " ".join(text.split()) not in read]
    assert len(broken) < 0.01 * len(texts), broken


def test_less_than_a_hundredth_is_a_head_a_foot_or_navigation(
    known: Known, paragraphs: list[str]
) -> None:
    beside = [paragraph for paragraph in paragraphs
              if any(words in paragraph for words in known.beside)]  # fmt: skip
    assert len(beside) < 0.01 * len(paragraphs), beside
    assert len(paragraphs) <= 1.01 * len(known.parts)


def test_tables_are_whole(known: Known, paragraphs: list[str]) -> None:
    tables = [part.markdown() for part in known.parts if part.kind == "table"]
    assert [table for table in tables if table not in paragraphs] == []


def test_what_is_read_is_in_order(known: Known, paragraphs: list[str]) -> None:
    """Of parts that occur once."""
    texts = [part.markdown() for part in known.parts]
    once = [text for text in texts if texts.count(text) == paragraphs.count(text) == 1]
    assert len(once) > 0.5 * len(set(texts))
    assert sorted(once, key=paragraphs.index) == once


def test_there_are_twelve_of_every_kind() -> None:
    assert len(NAMES) == len(set(NAMES)) == 12
    assert {name.rpartition(".")[2] for name in NAMES} == {"pdf", "epub", "docx", "html", "md"}
    kinds = {part.kind for known in known_documents() for part in known.parts}
    assert kinds == {"h1", "h2", "p", "ul", "ol", "table"}


def test_a_part_as_markdown() -> None:
    assert Part("h2", "A").markdown() == "## A"
    assert Part("ol", items=("a", "b")).markdown() == "1. a\n2. b"
    table = Part("table", rows=(("a", "b"), ("c", "d")))
    assert table.markdown() == "| a | b |\n| --- | --- |\n| c | d |"
