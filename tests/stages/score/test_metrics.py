"""Metrics against the package they come from and cases worked by hand; LongBench's against
the values of the authors' own functions.

The authors' are those of LongBench/metrics.py (2e00731) with jieba 0.42.1, rouge 1.0.1 and, for
code, fuzzywuzzy 0.18.0 as pip installs it.
"""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from stages.score import longbench_metrics
from stages.score.metrics import METRICS, rouge_l
from tests.support.reading import question

ANSWER = "The cats were running to the old house. They found nothing."
REFERENCES = ("A cat runs to its old house and finds nothing.", "They were late.")


def score(metric: str, answer: str, references: Sequence[str]) -> float:
    return METRICS[metric].score(answer, question(references=tuple(references)))


@pytest.mark.parametrize("kind", ["rouge1", "rouge2", "rougeL"])
@pytest.mark.parametrize(("name", "stems"), [("{}_stem", True), ("scrolls_{}", False)])
def test_rouge_is_that_of_the_best_reference(kind: str, name: str, stems: bool) -> None:
    scorer = RougeScorer([kind], use_stemmer=stems)
    expected = [100 * scorer.score(r, ANSWER)[kind].fmeasure for r in REFERENCES]
    assert score(name.format(kind), ANSWER, REFERENCES) == pytest.approx(max(expected))
    assert score(name.format(kind), ANSWER, REFERENCES[1:]) == pytest.approx(expected[1])


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


ENGLISH: list[tuple[str, str, float, float]] = [  # answer, reference, qa_f1_score, rouge_score
    ("The Weasley family lives in the Burrow.", "the Burrow", 0.333333, 0.444444),
    ("He is an owl, a barn owl!", "A barn owl.", 0.571429, 0.2),
    ("42", "forty-two", 0, 0),
    ("Paris; Paris; Paris", "Paris", 0.5, 0.666667),
    ("state-of-the-art results", "state of the art results", 0.333333, 0.285714),
    ("It's Anna's book", "Anna s book", 0.333333, 0.333333),
    ("the a an", "a", 0, 0.5),
    ("No evidence", "unanswerable", 0, 0),
    ("A long answer that mentions London and also Paris in passing", "London", 0.181818, 0.166667),
]
CHINESE: list[tuple[str, str, float, float]] = [  # qa_f1_zh_score, rouge_zh_score
    ("汉朝自高祖斩白蛇而起义，一统天下。", "高祖斩白蛇", 0.545455, 0.461538),
    ("他住在北京。", "北京", 0.4, 0.333333),
    ("北京大学的图书馆", "北京大学图书馆", 0, 0),
    ("没有答案", "上海", 0, 0),
    ("2019年，公司收入为3.5亿元。", "3.5亿元", 0.444444, 0.461538),
    ("《红楼梦》的作者是曹雪芹", "曹雪芹", 0.285714, 0.25),
]


def task_score(task: str, answer: str, *references: str, classes: tuple[str, ...] = ()) -> float:
    asked = question(references=references, task=task, classes=classes)
    assert METRICS["longbench"].applies(asked)
    return METRICS["longbench"].score(answer, asked)


@pytest.mark.parametrize(("answer", "reference", "f1", "rouge"), ENGLISH)
def test_english_is_the_authors(answer: str, reference: str, f1: float, rouge: float) -> None:
    asked = question(references=(reference,))
    assert METRICS["longbench_f1"].score(answer, asked) == pytest.approx(100 * f1, abs=1e-4)
    assert METRICS["longbench_rouge"].score(answer, asked) == pytest.approx(100 * rouge, abs=1e-4)
    assert task_score("qasper", answer, reference) == pytest.approx(100 * f1, abs=1e-4)
    assert task_score("gov_report", answer, reference) == pytest.approx(100 * rouge, abs=1e-4)


@pytest.mark.parametrize(("answer", "reference", "f1", "rouge"), CHINESE)
def test_chinese_is_the_authors(answer: str, reference: str, f1: float, rouge: float) -> None:
    for name, task, expected in (
        ("longbench_f1_zh", "multifieldqa_zh", 100 * f1),
        ("longbench_rouge_zh", "vcsum", 100 * rouge),
    ):
        found = METRICS[name].score(answer, question(references=(reference,)))
        assert found == pytest.approx(expected, abs=1e-4)
        assert task_score(task, answer, reference) == found


def test_a_long_sentence_is_scored() -> None:
    """The package recurses once a word; LongBench's own score of it is 0."""
    text = " ".join(f"w{number}" for number in range(700))
    assert longbench_metrics.rouge(text, text) == pytest.approx(100)
    for answer, reference in (("...", "a b"), ("a b", "."), ("", "a")):
        assert longbench_metrics.rouge(answer, reference) == 0


CLASSES = ("Date", "Food", "Other entity", "Other location", "location", "entity")


@pytest.mark.parametrize(
    ("answer", "reference", "expected"),
    [
        ("Type: Food", "Food", 100),
        ("Food or Date", "Food", 50),
        ("Date", "Food", 0),
        ("no idea", "Food", 0),
        ("Other location", "Other location", 100),  # `location` is part of the right class
        ("Other location", "location", 50),  # but the right class is part of another
        ("food", "Food", 0),
        ("\n\nFood\nQuestion: ...\nType: Date", "Food", 100),  # its first line alone
        ("Question\nFood", "Food", 0),
    ],
)
def test_classification(answer: str, reference: str, expected: float) -> None:
    assert task_score("trec", answer, reference, classes=CLASSES) == expected
    assert task_score("lsht", answer, reference, classes=CLASSES) == expected


def test_of_two_parts_of_the_right_class_in_a_row_the_second_counts() -> None:
    """LongBench removes `a` while it goes through a, ab, abc, and so never looks at `ab`."""
    assert longbench_metrics.classification("abc", "abc", ("a", "ab", "abc")) == 50
    assert longbench_metrics.classification("abc", "abc", ("a", "abc", "ab")) == 100


@pytest.mark.parametrize(
    ("task", "answer", "reference", "expected"),
    [
        ("passage_retrieval_en", "Paragraph 7", "Paragraph 7", 100),
        ("passage_retrieval_en", "7, perhaps 17 or 7.", "Paragraph 7", 200 / 3),
        ("passage_retrieval_en", "Paragraph 07", "Paragraph 7", 0),
        ("passage_retrieval_en", "the seventh", "Paragraph 7", 0),
        ("passage_retrieval_zh", "段落3", "段落3", 100),
        ("passage_retrieval_zh", "不是段落1，是段落3", "段落3", 50),
        ("passage_count", "There are 12.", "12", 100),
        ("passage_count", "12 of 20", "12", 50),
        ("passage_count", "twelve", "12", 0),
    ],
)
def test_numbers(task: str, answer: str, reference: str, expected: float) -> None:
    assert task_score(task, answer, reference) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("answer", "reference", "expected"),
    [
        ("        return self.items[key]", "        return self.items[name]", 92),
        ("    public int getId() {", "    public void setId(int id) {", 76),
        ("ababab", "aaaaab", 33),  # 67 with python-Levenshtein
        ("\n\n# first\n```python\nx = 1 // 2\nx = 1\ny = 2", "x = 1", 100),
        ("# nothing else", "x = 1", 0),
    ],
)
def test_code(answer: str, reference: str, expected: float) -> None:
    assert task_score("lcc", answer, reference) == expected
    assert task_score("repobench-p", answer, reference) == expected


def test_the_first_line_of_few_shot_answers() -> None:
    answer = "\nParis\nQuestion: and Italy? Answer: Rome"
    assert task_score("triviaqa", answer, "Paris") == 100
    assert task_score("samsum", answer, "Paris") == pytest.approx(100)
    assert task_score("hotpotqa", answer, "Paris") < 50


def test_the_best_reference_counts() -> None:
    assert task_score("hotpotqa", "Paris", "Rome", "Paris") == 100
    assert task_score("trec", "Food", "Date", "Food", classes=CLASSES) == 100


@pytest.mark.parametrize("more", [{}, {"task": "mine"}, {"task": "trec"}])
def test_what_longbench_does_not_score_has_no_score(more: dict[str, Any]) -> None:
    assert not METRICS["longbench"].applies(question(references=("Food",), **more))
