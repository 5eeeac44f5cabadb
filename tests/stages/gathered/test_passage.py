"""The passage of a page that an answer rests on, worked by hand."""

from math import log

import pytest

from stages.gathered.quoted import Quote, passage, rarity

BARN = "The barn is red. It was painted in May."
BREAD = "The baker sold bread. Nobody painted it."
TEXTS = [BARN, BREAD, "The barn burnt."]


def test_a_term_is_the_rarer_the_fewer_texts_have_it() -> None:
    """barn is in two of three texts, and so is paint, by its stem; bread in one."""
    weight = rarity(TEXTS)
    assert weight["barn"] == weight["paint"] == pytest.approx(log(4 / 2))
    assert weight["bread"] == pytest.approx(log(4 / 1))
    assert "the" not in weight


def sentence(word: str, words: int = 12) -> str:
    return " ".join([word.title(), *["was"] * (words - 2), "there."])


def test_it_is_the_sentence_that_shares_rare_words_with_answer_and_question() -> None:
    page = " ".join([sentence("one", 30), sentence("lighthouse", 30), sentence("three", 30)])
    weight = {"lighthous": 2.0, "on": 1.0}
    found = passage(page, "Who has the lighthouse?", "", weight)
    assert found == Quote(sentence("lighthouse", 30), 2.0)
    assert passage(page, "?", "The lighthouse", weight) == found


def test_a_short_sentence_has_one_beside_it_and_those_that_share_words_are_kept() -> None:
    """10 + 10 words are at most 20; the third shares nothing. With a weight it is in, up to 60."""
    page = " ".join([sentence("well", 10), sentence("barn", 10), sentence("mill", 10)])
    only = passage(page, "well", "", {"well": 1.0})
    assert only.text == " ".join([sentence("well", 10), sentence("barn", 10)])
    more = passage(page, "well", "mill", {"well": 2.0, "mill": 1.0})
    assert more == Quote(page, 3.0)
    longer = " ".join([sentence("well", 35), sentence("mill", 35)])
    assert passage(longer, "well mill", "", {"well": 2.0, "mill": 1.0}).text == sentence("well", 35)


def test_headings_and_rows_of_a_table_have_lines_of_their_own() -> None:
    table = "| Part | Cost |\n|---|---|\n| wheel | 40 |"
    page = f"# The mill\n\nThe wheel\nis of oak.\n\n{table}\n"
    weight = {"mill": 1.0, "wheel": 1.0, "oak": 1.0}
    assert passage(page, "mill wheel oak", "", weight) == Quote(
        f"# The mill\nThe wheel is of oak.\n{table}", 3.0
    )
