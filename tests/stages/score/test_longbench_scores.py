"""LongBench's scores: the values of the authors' own functions, and cases worked by hand.

The authors' are those of LongBench/metrics.py (2e00731) with jieba 0.42.1, rouge 1.0.1 and, for
code, fuzzywuzzy 0.18.0 as pip installs it.
"""

from typing import Any

import pytest

from stages.score import longbench_metrics
from stages.score.metrics import METRICS
from tests.support.reading import question

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


@pytest.mark.parametrize(("answer", "reference"), [("...", "a b"), ("a b", "."), ("", "a")])
def test_nothing_but_full_stops(answer: str, reference: str) -> None:
    assert longbench_metrics.rouge(answer, reference) == 0


def test_a_long_sentence_is_scored() -> None:
    """The package recurses once a word; LongBench's own score of it is 0."""
    text = " ".join(f"w{number}" for number in range(700))
    assert longbench_metrics.rouge(text, text) == pytest.approx(100)


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
