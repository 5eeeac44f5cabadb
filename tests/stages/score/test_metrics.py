"""Metrics against the package they come from, hand-worked cases, and a naive recomputation."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from stages.score.metrics import METRICS, rouge_l
from tests.support.reading import question

ANSWER = "The cats were running to the old house. They found nothing."
REFERENCES = ("A cat runs to its old house and finds nothing.", "They were late.")


def score(metric: str, answer: str, references: Sequence[str]) -> float:
    return METRICS[metric].score(answer, question(references=tuple(references)))


@pytest.mark.parametrize("kind", ["rouge1", "rouge2", "rougeL"])
def test_stemmed_rouge_is_the_best_over_references(kind: str) -> None:
    scorer = RougeScorer([kind], use_stemmer=True)
    expected = [100 * scorer.score(r, ANSWER)[kind].fmeasure for r in REFERENCES]
    assert score(f"{kind}_stem", ANSWER, REFERENCES) == pytest.approx(max(expected))
    assert score(f"{kind}_stem", ANSWER, REFERENCES[1:]) == pytest.approx(expected[1])


def test_rouge_l_sum_takes_a_sentence_a_line() -> None:
    reference = "They found nothing. The cats went to the house."
    scorer = RougeScorer(["rougeLsum"], use_stemmer=True)
    by_line = scorer.score(
        "They found nothing.\nThe cats went to the house.",
        "The cats were running to the old house.\nThey found nothing.",
    )
    assert score("rougeLsum", ANSWER, [reference]) == pytest.approx(
        100 * by_line["rougeLsum"].fmeasure
    )
    assert score("rougeLsum", ANSWER, [reference]) > score("rougeL_stem", ANSWER, [reference])


# Few words, so that they recur.
TOKENS = st.lists(st.sampled_from("abcd"), max_size=24)


@given(TOKENS, TOKENS)
def test_rouge_l_is_that_of_rouge_score(reference: list[str], answer: list[str]) -> None:
    texts = " ".join(reference), " ".join(answer)
    expected = RougeScorer(["rougeL"]).score(*texts)["rougeL"].fmeasure
    assert rouge_l(reference, answer) == expected, "to the last digit"


@pytest.mark.parametrize("kind", ["rouge1", "rouge2", "rougeL"])
def test_the_parts_of_scrolls_rouge_have_no_stems(kind: str) -> None:
    scorer = RougeScorer([kind], use_stemmer=False)
    expected = max(100 * scorer.score(r, ANSWER)[kind].fmeasure for r in REFERENCES)
    assert score(f"scrolls_{kind}", ANSWER, REFERENCES) == pytest.approx(expected)


F1_CASES: list[tuple[str, str, float]] = [
    ("the old house", "The Old House.", 100),
    ("an old house", "old houses", 50),  # old shared: P 1/2, R 1/2
    ("his uncle", "his mother's uncle John", 200 * 2 / 6),  # P 2/2, R 2/4
    ("no no no", "no no", 80),  # multiset: 2 shared, P 2/3, R 2/2
    ("nobody", "his uncle", 0),
    ("", "his uncle", 0),
    ("", "", 0),
    ("the", "a", 0),  # articles only
    ("well-known", "well known", 0),  # punctuation is deleted, not a space
]


@pytest.mark.parametrize(("answer", "reference", "expected"), F1_CASES)
def test_longbench_f1(answer: str, reference: str, expected: float) -> None:
    assert score("longbench_f1", answer, [reference]) == pytest.approx(expected)


EM_CASES: list[tuple[str, str, float]] = [
    ("The old  house!", "old house", 100),
    ("house old", "old house", 0),
    ("theatre", "atre", 0),  # an article only as a word
    ("his uncle's", "his uncles", 100),
    ("his uncle John", "his uncle", 0),
    ("", "the", 100),
]


@pytest.mark.parametrize(("answer", "reference", "expected"), EM_CASES)
def test_squad_em(answer: str, reference: str, expected: float) -> None:
    assert score("squad_em", answer, [reference]) == expected


@pytest.mark.parametrize("name", sorted({*METRICS} - {"longbench"}))
def test_every_metric(name: str) -> None:
    """0-100, the best reference counts, an empty answer scores 0, no reference is an error."""
    assert score(name, ANSWER, [ANSWER]) == pytest.approx(100)
    assert score(name, ANSWER, ["Something else entirely.", ANSWER]) == pytest.approx(100)
    assert score(name, "", REFERENCES) == 0
    with pytest.raises(ValueError, match="empty"):
        score(name, ANSWER, [])
