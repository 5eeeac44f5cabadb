"""Paragraphs and sentences tile the text and end where a reader would say; which are pauses."""

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.text.words import (
    Paragraphs,
    Spans,
    ends_at_pauses,
    goes_on,
    is_heading,
    paragraph_spans,
    sentence_spans,
)

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
    ("text", "sentences"),
    [
        ("He came. She left!  Why? Well…", ["He came. ", "She left!  ", "Why? ", "Well…"]),
        ('"No." (Yes!) It is 3.5 metres.', ['"No." ', "(Yes!) ", "It is 3.5 metres."]),
        ("Mr. Ash met J. R. Oak, i.e. me. So do I. Bye", [
            "Mr. Ash met J. R. Oak, i.e. me. ", "So do I. ", "Bye",
        ]),
        ("你好。再见！", ["你好。", "再见！"]),
        ("A: one\nPhD B: two\nor three", ["A: one\n", "PhD B: two\nor three"]),
        ("A heading\n\n  Text", ["A heading\n\n  ", "Text"]),
        ("no end", ["no end"]),
        ("", []),
    ],
)  # fmt: skip
def test_sentence_ends(text: str, sentences: list[str]) -> None:
    assert cut(text, sentence_spans(text)) == sentences


@pytest.mark.parametrize(
    ("text", "how", "paragraphs"),
    [
        ("a\nb\n\nc", "lines", ["a\n", "b\n\n", "c"]),
        ("a\nb\n \nc\n", "blank_lines", ["a\nb\n \n", "c\n"]),
        ("a\nb\n\nc", "auto", ["a\nb\n\n", "c"]),
        ("a\nb\n\n", "auto", ["a\n", "b\n\n"]),
        ("\n\na", "lines", ["\n\na"]),
        (" \n ", "auto", [" \n "]),
        ("", "auto", []),
    ],
)
def test_paragraph_ends(text: str, how: Paragraphs, paragraphs: list[str]) -> None:
    assert cut(text, paragraph_spans(text, how)) == paragraphs


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


def test_headings() -> None:
    assert [paragraph for paragraph in HEADINGS if not is_heading(paragraph)] == []
    assert [paragraph for paragraph in NO_HEADINGS if is_heading(paragraph)] == []


GOING_ON = [
    ("She put down the lamp and she added,", '"I shall go."'),
    ("As the poet has it:", "  Full fathom five\n  thy father lies."),
    ("Full fathom five thy father lies;\nOf his bones are coral made;", "Those are pearls"),
    ("weary and worn, 105", "She slept."),  # the number of a verse
    ("“I mind the oak,’”", "quoted Anne."),
    ("He said this--", '"Go!"'),
    ("The tower, which", "[Illustration: the tower]"),
    ("It was in 1066", "that they came."),
    ("Take these:", "- a lamp"),
]
ENDED = [
    ("The stairs gave way.", "He waited."),
    ('"Go away!"', "he said, and went."),  # who ends in a mark has ended
    ("“And then I—”", "“Stop!”"),  # cut short by another
    ("She slept.* 105", "He did not."),
    ("user: thanks", "assistant: You are welcome."),
    ("Grad A: we started,", "Grad B: Yes ."),
    ("- a lamp", "- a rope"),
    ("| a | b |", "| c | d |"),
    ("他们看见了", "一只鸟"),
    ("It rose in 1066", "Then it fell."),
    ("", "x"),
]


def test_a_sentence_goes_on_or_has_ended() -> None:
    assert [pair for pair in GOING_ON if not goes_on(*pair)] == []
    assert [pair for pair in ENDED if goes_on(*pair)] == []


def words(num: int, end: str = ".") -> str:
    return "word " * (num - 1) + "word" + end


def test_no_end_stands_between_a_heading_and_its_text() -> None:
    # However long the text is, and however many headings there are before it.
    assert ends_at_pauses([words(9), "THE TOWER", words(90), words(9)], near=5) == [0, 2, 3]
    heads = ["THE TOWER", "CHAPTER I", "A Night"]
    assert ends_at_pauses([words(9), *heads, words(90), words(9)], near=5) == [0, 4, 5]


def test_a_table_of_contents_may_be_cut() -> None:
    # Ten headings of 2 words: the ends of at most 5 words from its first, and from the text, go.
    contents = [words(9), *["The Tower"] * 10, words(90)]
    assert ends_at_pauses(contents, near=5) == [0, 3, 4, 5, 6, 7, 11]


def test_an_end_inside_a_sentence_is_there_only_where_no_pause_is_near() -> None:
    assert ends_at_pauses([words(300), words(200, ","), words(4), words(9)], near=5) == [0, 2, 3]
    assert ends_at_pauses([words(300), words(5, ","), words(90), words(9)], near=5) == [0, 2, 3]
    assert ends_at_pauses([words(300), words(6, ","), words(6), words(9)], near=5) == [0, 1, 2, 3]
    # A poem without a full stop: 24 stanzas of 2 words, ends at 6 to 42 words of 48.
    poem = [words(2, ",") for _ in range(24)]
    assert ends_at_pauses(poem, near=5) == [*range(2, 21), 23]
