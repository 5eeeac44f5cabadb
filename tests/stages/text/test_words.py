"""Words in scripts with and without spaces; paragraphs and sentences, which tile the text and end
where a reader would say; which ends are pauses; the days that texts state."""

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.rows import UnitRows
from stages.index.paginate import PaginateUniform
from stages.tables.pages import Page
from stages.text.chat_text import day_of, days_in
from stages.text.words import (
    Paragraphs,
    Spans,
    ends_at_pauses,
    goes_on,
    header_of,
    is_heading,
    is_without_spaces,
    num_words,
    paragraph_spans,
    sentence_spans,
    without_header,
    word_spans,
)
from tests.support.reading import document, never, run

CHINESE = "他们在山上看见了一只鸟。"  # 11 characters and a full stop


def uniform(text: str) -> list[Page]:
    stage = PaginateUniform(page_breaks=False, paragraphs="auto", words=600, max_words=1000)
    pages, _ = run(stage, UnitRows(document=document(text)), never())
    assert "".join(page.text for page in pages) == text
    return pages


@pytest.mark.parametrize("unit", ["ab ", "word  \n", " ", "a" * 1000 + "\n"], ids=repr)
def test_a_long_text_is_counted_without_being_split_wrongly(unit: str) -> None:
    for size in (999_999, 1_000_000, 1_000_001, 2_500_000):
        text = (unit * (size // len(unit) + 1))[:size]
        assert num_words(text) == len(text.split())


def test_scripts_without_spaces() -> None:
    counts = {
        "": 0, " \n\f": 0, "他们在山上": 5, "他们，在山上。": 5,
        "「他们」在 山上 ABC 12": 8,  # 「, 他, 们」, 在, 山, 上, ABC, 12
        "カタカナとひらがな": 9, "한국어는 띄어쓰기가 있다": 3, "Kant说：Ja": 3,
        "สวัสดีครับ": 3,  # ten characters, four a word
        "\U00020000\U00020001": 2, "བོད་སྐད་ཡིན། ལས༎": 4, "༄༅།།བོད་": 2,  # Tibetan: syllables
        "a" * 1000: 1, "a" * 1001: 251,  # longer than any word: four characters a word
        "one " + "é" * 1400 + " two": 352,
    }  # fmt: skip
    assert {text: num_words(text) for text in counts} == counts
    assert {text: len(word_spans(text)) for text in counts} == counts


def test_a_header_is_text_but_no_words() -> None:
    expected = {
        "\f[2023/05/30 (Tue) 21:48]\nuser: hello": (2, "[2023/05/30 (Tue) 21:48]"),
        "\f[a b]\none\f[c d]\ntwo": (2, "[a b]"), "one\f[a b]\ntwo": (2, None),
        "\fone two": (2, None), "[a b] one": (3, None), "\f[not closed\none": (3, None),
    }  # fmt: skip
    assert {text: (num_words(text), header_of(text)) for text in expected} == expected
    for text, (_, header) in expected.items():
        assert without_header(text) == (text.partition("\n")[2] if header else text)


@pytest.mark.parametrize("unit", ["a", "ß", "བོད་སྐད་", "ቃል፡", "QUJD+/="])
def test_a_text_without_white_space_is_paged_by_characters(unit: str) -> None:
    text = (unit * 600_000)[:200_000]
    assert num_words(text) == len(word_spans(text)) >= 50_000
    pages = uniform(text)
    assert len(pages) > 60
    assert {page.num_words for page in pages[:-1]} <= {*range(500, 701)}
    assert is_without_spaces(text)


def test_what_has_white_space_or_needs_none_is_not_said_to_lack_it() -> None:
    spaced = (CHINESE * 500, "ไทย" * 2000, "\t".join(["a" * 1000] * 9), "one two\n" * 999)
    lacking = ("one two " * 400 + "x" * 1001, "中" * 1500 + "x" * 1001, "\n" + "x" * 1500 + " y")
    assert [is_without_spaces(text) for text in (*spaced, *lacking)] == [False] * 4 + [True] * 3


def test_a_chinese_book_without_spaces_makes_pages_near_the_wished_size() -> None:
    text = (CHINESE * 4200)[:50_000]
    assert num_words(text) == 50_000 - text.count("。")
    pages = uniform(text)
    assert all(abs(page.num_words - 600) <= 80 for page in pages[:-1])
    assert all((page.text or "").endswith("。") for page in pages[:-1])
    assert sum(page.num_words for page in pages) == num_words(text)


TEXTS = st.text(
    st.sampled_from("ab Z.!?…\"')]”:\n\t 。！？』é中1") | st.characters(codec="utf-8"), max_size=80
)


def cut(text: str, spans: Spans) -> list[str]:
    return [text[start:end] for start, end in spans]


def tiles(text: str, spans: Spans) -> bool:
    ends = [0, *(end for _, end in spans)]
    in_order = all(start == before for (start, _), before in zip(spans, ends, strict=False))
    return in_order and ends[-1] == len(text) and all(a < b for a, b in pairwise(ends))


@given(TEXTS, st.sampled_from(["lines", "blank_lines", "auto"]))
def test_sentences_and_paragraphs_tile_the_text(text: str, how: Paragraphs) -> None:
    assert tiles(text, sentence_spans(text))
    spans = paragraph_spans(text, how)
    assert tiles(text, spans)
    assert len(spans) == 1 or all(part.strip() for part in cut(text, spans))


@pytest.mark.parametrize(
    ("how", "parts"),
    [
        *((None, sentences) for sentences in (
            ["He came. ", "She left!  ", "Why? ", "Well…"], ["no end"], ["你好。", "再见！"],
            ['"No." ', "(Yes!) ", "It is 3.5 metres."], ["A heading\n\n  ", "Text"], [],
            ["Mr. Ash met J. R. Oak, i.e. me. ", "So do I. ", "Bye"],
            ["A: one\n", "PhD B: two\nor three"])),
        ("lines", ["a\n", "b\n\n", "c"]), ("lines", ["\n\na"]),
        ("blank_lines", ["a\nb\n \n", "c\n"]), ("auto", ["a\nb\n\n", "c"]),
        ("auto", ["a\n", "b\n\n"]), ("auto", [" \n "]), ("auto", []),
    ],
)  # fmt: skip
def test_ends_of_sentences_and_paragraphs(how: Paragraphs | None, parts: list[str]) -> None:
    text = "".join(parts)
    assert cut(text, paragraph_spans(text, how) if how else sentence_spans(text)) == parts


@pytest.mark.parametrize("piece", [".", ". ", "\n", " ", '."', "。", "a\n ", "Mr. "])
def test_long_runs_take_linear_time(piece: str) -> None:
    started = time.perf_counter()
    sentence_spans(piece * 50_000)
    assert time.perf_counter() - started < 2


HEADINGS = [
    "## Tides", "# Part One\n## Tides", "CHAPTER IX.", "Chapter 9\nIn which the bell rings",
    "Book the First. The Lamp.", "XII", "IV.", "12", "THE TOWER", "  THE END  ", "The Tower",
    "A Night on the Stairs", "Letter IV", "L'Été",
]  # fmt: skip
NO_HEADINGS = [
    "", " \n ", "It rose.", "He carried oil", "#5 was lit.", "## Tides\nThe sea rose.",
    '"NO!"', "STOP!", "What Now?", "Anna: Yes", "| LAMP | OIL |", "- Lamps", "灯塔", "Yes.",
    "Book a room by noon, and bring the lamps that the keeper has left on the stairs, all of "
    "them but one.",
]  # fmt: skip
GOING_ON = [
    ("She put down the lamp and she added,", '"I shall go."'), ("He said this--", '"Go!"'),
    ("As the poet has it:", "  Full fathom five\n  thy father lies."), ("Take these:", "- a lamp"),
    ("Full fathom five thy father lies;\nOf his bones are coral made;", "Those are pearls"),
    ("weary and worn, 105", "She slept."),  # the number of a verse
    ("“I mind the oak,’”", "quoted Anne."), ("The tower, which", "[Illustration: the tower]"),
    ("It was in 1066", "that they came."),
]  # fmt: skip
ENDED = [
    ("The stairs gave way.", "He waited."), ("She slept.* 105", "He did not."),
    ('"Go away!"', "he said, and went."),  # who ends in a mark has ended
    ("“And then I—”", "“Stop!”"),  # cut short by another
    ("user: thanks", "assistant: You are welcome."), ("Grad A: we started,", "Grad B: Yes ."),
    ("- a lamp", "- a rope"), ("| a | b |", "| c | d |"), ("他们看见了", "一只鸟"),
    ("It rose in 1066", "Then it fell."), ("", "x"),
]  # fmt: skip


def test_headings_and_whether_a_sentence_goes_on() -> None:
    assert [paragraph for paragraph in HEADINGS if not is_heading(paragraph)] == []
    assert [paragraph for paragraph in NO_HEADINGS if is_heading(paragraph)] == []
    assert [pair for pair in GOING_ON if not goes_on(*pair)] == []
    assert [pair for pair in ENDED if goes_on(*pair)] == []


def test_ends_of_pages_that_are_no_pauses() -> None:
    def words(num: int, end: str = ".") -> str:
        return "word " * (num - 1) + "word" + end

    # Never between a heading and its text, however long that is; inside a sentence where no pause
    # is near.
    assert ends_at_pauses([words(9), "THE TOWER", words(90), words(9)], near=5) == [0, 2, 3]
    heads = ["THE TOWER", "CHAPTER I", "A Night"]
    assert ends_at_pauses([words(9), *heads, words(90), words(9)], near=5) == [0, 4, 5]
    assert ends_at_pauses([words(300), words(5, ","), words(90), words(9)], near=5) == [0, 2, 3]
    assert ends_at_pauses([words(300), words(6, ","), words(6), words(9)], near=5) == [0, 1, 2, 3]
    # A poem without a full stop: 24 stanzas of 2 words, ends at 6 to 42 words of 48.
    assert ends_at_pauses([words(2, ",")] * 24, near=5) == [*range(2, 21), 23]
    # Of contents, ten headings of 2 words, the ends near their first and the text go.
    contents = [words(9), *["The Tower"] * 10, words(90)]
    assert ends_at_pauses(contents, near=5) == [0, 3, 4, 5, 6, 7, 11]


def test_the_day_that_a_text_is_and_days_within_it() -> None:
    days = {
        **dict.fromkeys((
            "2023/05/30", "2023-05-30", "2023.05.30", " 2023/05/30. ", "2023/05/30 (Tue)",
            "[2023/05/30 (Tue) 21:48]", "2023-05-30T21:48:00Z", "May 30, 2023", "30/05/2023",
            "Tuesday, 30th of May, 2023", "on 2023/05/30 at 9:15 p.m.", "05/30/2023",
        ), "2023/05/30"),
        "2023/5/3": "2023/05/03", "may 3rd 2023": "2023/05/03", "3 Sept. 2023": "2023/09/03",
        "2024/02/29": "2024/02/29", "05/05/2023": "2023/05/05",
        # no day, or no one day
        **dict.fromkeys((
            "", "N/A", "unknown", "2023", "2023/05", "May 2023", "May 30", "05/06/2023", "5/30/23",
            "2023/02/29", "2023/13/01", "2023/30/05", "2023/05/00", "0000/01/01", "12023/05/30",
            "2023/05/301", "2023/05/30/1", "2023-05/30", "20230530", "2023/05/01 - 2023/05/03",
            "before 2023/05/30", "around May 30, 2023", "2023/05/30 or so", "٢٠٢٣/٠٥/٣٠",
            "2023/05/30" + " " * 200,
        ), ""),
    }  # fmt: skip
    assert {text: day_of(text) for text in days} == days
    text = "From May 3rd, 2023 to 2023-06-01 (maybe 4/5/2023, or in May 2022), then 2023/02/30."
    assert days_in(text) == ["2023/05/03", "2023/06/01"]
    assert days_in("v1.2023.05.30 and 2023/05/30-2023/06/30, maybe 1999") == []
