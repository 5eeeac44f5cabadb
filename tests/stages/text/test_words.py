"""What a word is, in scripts with spaces between words and in those without."""

import pytest

from pipeline.core.rows import UnitRows
from stages.index.paginate import PaginateUniform
from stages.tables.pages import Page
from stages.text.words import header_of, is_without_spaces, num_words, without_header, word_spans
from tests.support.reading import document, never, run

CHINESE = "他们在山上看见了一只鸟。"  # 11 characters and a full stop


def uniform(text: str) -> list[Page]:
    stage = PaginateUniform(page_breaks=False, paragraphs="auto", words=600, max_words=1000)
    pages, _ = run(stage, UnitRows(document=document(text)), never())
    assert "".join(page.text for page in pages) == text
    return pages


@pytest.mark.parametrize("size", [999_999, 1_000_000, 1_000_001, 2_500_000])
def test_a_long_text_is_counted_without_being_split_wrongly(size: int) -> None:
    for unit in ("ab ", "word  \n", " ", "a" * 1000 + "\n"):
        text = (unit * (size // len(unit) + 1))[:size]
        assert num_words(text) == len(text.split())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", 0),
        (" \n\f", 0),
        ("他们在山上", 5),
        ("他们，在山上。", 5),
        ("「他们」在 山上 ABC 12", 8),  # 「, 他, 们」, 在, 山, 上, ABC, 12
        ("カタカナとひらがな", 9),
        ("한국어는 띄어쓰기가 있다", 3),
        ("สวัสดีครับ", 3),  # ten characters, four a word
        ("Kant说：Ja", 3),
        ("\U00020000\U00020001", 2),
        ("བོད་སྐད་ཡིན། ལས༎", 4),  # syllables
        ("༄༅།།བོད་", 2),
        ("a" * 1000, 1),
        ("a" * 1001, 251),  # longer than any word: four characters a word
        ("one " + "é" * 1400 + " two", 352),
    ],
)
def test_scripts_without_spaces(text: str, words: int) -> None:
    assert num_words(text) == words
    assert len(word_spans(text)) == words


@pytest.mark.parametrize(
    ("text", "words", "header"),
    [
        ("\f[2023/05/30 (Tue) 21:48]\nuser: hello", 2, "[2023/05/30 (Tue) 21:48]"),
        ("\f[a b]\none\f[c d]\ntwo", 2, "[a b]"),
        ("\fone two", 2, None),
        ("[a b] one", 3, None),
        ("one\f[a b]\ntwo", 2, None),
        ("\f[not closed\none", 3, None),
    ],
)
def test_a_header_is_text_but_no_words(text: str, words: int, header: str | None) -> None:
    assert (num_words(text), header_of(text)) == (words, header)
    rest = text if header is None else text.partition("\n")[2]
    assert without_header(text) == rest


@pytest.mark.parametrize("unit", ["a", "ß", "བོད་སྐད་", "ቃል፡", "QUJD+/="])
def test_a_text_without_white_space_is_paged_by_characters(unit: str) -> None:
    text = (unit * 600_000)[:200_000]
    assert num_words(text) == len(word_spans(text)) >= 50_000
    pages = uniform(text)
    assert len(pages) > 60
    assert {page.num_words for page in pages[:-1]} <= {*range(500, 701)}
    assert is_without_spaces(text)


def test_what_has_white_space_or_needs_none_is_not_said_to_lack_it() -> None:
    for text in (CHINESE * 500, "ไทย" * 2000, "\t".join(["a" * 1000] * 9), "one two\n" * 999):
        assert not is_without_spaces(text)
    for text in ("one two " * 400 + "x" * 1001, "中" * 1500 + "x" * 1001, "\n" + "x" * 1500 + " y"):
        assert is_without_spaces(text)


def test_a_chinese_book_without_spaces_makes_pages_near_the_wished_size() -> None:
    text = (CHINESE * 4200)[:50_000]
    assert num_words(text) == 50_000 - text.count("。")
    pages = uniform(text)
    assert all(abs(page.num_words - 600) <= 80 for page in pages[:-1])
    assert all((page.text or "").endswith("。") for page in pages[:-1])
    assert sum(page.num_words for page in pages) == num_words(text)
