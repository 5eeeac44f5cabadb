"""ROUGE-L and ROUGE-Lsum against rouge-score itself, to the last digit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from stages.score.rouge_lcs import rouge_l, rouge_l_sum

# Few words, so that they recur: which of several longest subsequences is read out matters then.
TOKENS = st.lists(st.sampled_from("abcd"), max_size=24)
TEXT = st.lists(TOKENS, max_size=5)


def own(kind: str, reference: str, answer: str) -> float:
    return float(RougeScorer([kind]).score(reference, answer)[kind].fmeasure)


@given(TOKENS, TOKENS)
def test_rouge_l_is_that_of_rouge_score(reference: list[str], answer: list[str]) -> None:
    expected = own("rougeL", " ".join(reference), " ".join(answer))
    assert rouge_l(reference, answer) == expected


@given(TEXT, TEXT)
def test_rouge_l_sum_is_that_of_rouge_score(
    reference: list[list[str]], answer: list[list[str]]
) -> None:
    expected = own("rougeLsum", *("\n".join(map(" ".join, text)) for text in (reference, answer)))
    assert rouge_l_sum(reference, answer) == expected


def test_which_longest_subsequence_is_read_out_counts() -> None:
    """By hand: of "a b" and "b a" rouge-score reads "a" out. With "a" as a second sentence the
    union is "a" (P 1/3, R 1/2), with "b" it is both tokens (P 2/3, R 2/2)."""
    assert rouge_l_sum([["a", "b"]], [["b", "a"], ["a"]]) == pytest.approx(2 / 5)
    assert rouge_l_sum([["a", "b"]], [["b", "a"], ["b"]]) == pytest.approx(4 / 5)
