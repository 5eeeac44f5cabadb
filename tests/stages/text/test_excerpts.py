"""Gists and excerpts: whole sentences, their number of words, odd pages."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.text.excerpts import best_clauses, best_sentences, gist
from stages.text.words import num_words

CHINESE = "今天早上下了很大的雨。他走路去了学校。老师还没有来。" * 20


def words(count: int) -> str:
    return " ".join(f"word{i % 90}" for i in range(count))


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("", ""),
        ("{vocalsound} {disfmarker}", ""),
        ("A: Yes {gap} I  do .\nB: No.", "A: Yes I do . B: No."),
        (words(59), words(59)),
    ],
)
def test_a_short_page_comes_whole_without_tags(page: str, expected: str) -> None:
    assert gist(page) == expected


@pytest.mark.parametrize("page", [words(400), CHINESE, "Yeah. " * 300])
def test_gists_of_odd_pages_keep_the_limits(page: str) -> None:
    assert 40 <= num_words(gist(page)) <= 110


@settings(deadline=None)
@given(st.lists(st.integers(1, 250), min_size=1, max_size=40))
def test_no_long_page_is_told_by_its_beginning(lengths: list[int]) -> None:
    page = " ".join(" ".join(f"w{i}x{j}" for j in range(n)) + "." for i, n in enumerate(lengths))
    if num_words(page) >= 200:
        assert 40 <= num_words(gist(page)) <= 110
        assert not page.startswith(gist(page))


def test_a_long_sentence_is_cut_to_its_clauses() -> None:
    sentence = "In the spring, when it rained, the whale hit the ship, and all went home, at last."
    assert best_clauses(sentence, "Which whale hit the ship?", 6) == "the whale hit the ship"
    assert best_clauses(words(50), "word3", 5) == words(5)
    assert best_clauses("Short.", "Which whale hit the ship?", 5) == "Short."


def test_a_sentence_is_not_said_twice_in_an_answer() -> None:
    text = "The whale hit the ship with all of the strength that it had left. "
    assert best_sentences([text, text * 3], "Which whale?", 72) == text.strip()
