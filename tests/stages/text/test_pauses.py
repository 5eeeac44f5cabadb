"""Headings and sentences that go on, by examples; and the ends that are left, by hand."""

import pytest

from stages.text.pauses import ends_at_pauses, goes_on, is_heading


@pytest.mark.parametrize(
    "paragraph",
    [
        "## Tides", "# Part One\n## Tides", "CHAPTER IX.", "Chapter 9\nIn which the bell rings",
        "Book the First. The Lamp.", "XII", "IV.", "12", "THE TOWER", "  THE END  ", "The Tower",
        "A Night on the Stairs", "Letter IV", "L'Été",
    ],
)  # fmt: skip
def test_headings(paragraph: str) -> None:
    assert is_heading(paragraph)


@pytest.mark.parametrize(
    "paragraph",
    [
        "", " \n ", "It rose.", "He carried oil", "#5 was lit.", "## Tides\nThe sea rose.",
        '"NO!"', "STOP!", "What Now?", "Anna: Yes", "| LAMP | OIL |", "- Lamps", "灯塔", "Yes.",
        "Book a room by noon, and bring the lamps that the keeper has left on the stairs, all of "
        "them but one.",
    ],
)  # fmt: skip
def test_what_is_no_heading(paragraph: str) -> None:
    assert not is_heading(paragraph)


@pytest.mark.parametrize(
    ("above", "below"),
    [
        ("She put down the lamp and she added,", '"I shall go."'),
        ("As the poet has it:", "  Full fathom five\n  thy father lies."),
        ("Full fathom five thy father lies;\nOf his bones are coral made;", "Those are pearls"),
        ("weary and worn, 105", "She slept."),  # the number of a verse
        ("“I mind the oak,’”", "quoted Anne."),
        ("He said this--", '"Go!"'),
        ("The tower, which", "[Illustration: the tower]"),
        ("It was in 1066", "that they came."),
        ("Take these:", "- a lamp"),
    ],
)
def test_a_sentence_that_goes_on(above: str, below: str) -> None:
    assert goes_on(above, below)


@pytest.mark.parametrize(
    ("above", "below"),
    [
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
    ],
)
def test_a_sentence_that_ends(above: str, below: str) -> None:
    assert not goes_on(above, below)


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


def test_ends_of_little() -> None:
    assert ends_at_pauses([], near=5) == []
    assert ends_at_pauses(["THE TOWER"], near=5) == [0]
