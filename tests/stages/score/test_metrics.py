"""Metrics against the package they come from and cases worked by hand; LongBench's against
the values of the authors' own functions (tests/data/SOURCES.md)."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from pipeline.core.errors import UsageError
from pipeline.core.registry import load_plugins
from pipeline.store import connect
from pipeline.store.sql.connection import query
from pipeline.work.stage import MEASURES
from stages.score import longbench_metrics
from stages.score.metrics import METRICS, is_chinese, rouge_l, unicode_words, writing_of
from tests.support.command import DATA, ROOT
from tests.support.reading import question
from tests.support.runs.finished_run import FinishedRun

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
    lines = [text.replace(". ", ".\n") for text in (reference, ANSWER)]
    by_line = RougeScorer(["rougeLsum"], use_stemmer=True).score(*lines)["rougeLsum"]
    value = score("rougeLsum", ANSWER, [reference])
    assert value == pytest.approx(100 * by_line.fmeasure)
    assert value > score("rougeL_stem", ANSWER, [reference])


# Few words, so that they recur.
TOKENS = st.lists(st.sampled_from("abcd"), max_size=24)


@given(TOKENS, TOKENS)
def test_rouge_l_is_that_of_rouge_score(reference: list[str], answer: list[str]) -> None:
    texts = " ".join(reference), " ".join(answer)
    expected = RougeScorer(["rougeL"]).score(*texts)["rougeL"].fmeasure
    assert rouge_l(reference, answer) == expected, "to the last digit"


def test_squad_em() -> None:
    expected = {
        ("The old  house!", "old house"): 100, ("house old", "old house"): 0,
        ("theatre", "atre"): 0,  # an article only as a word
        ("his uncle's", "his uncles"): 100, ("his uncle John", "his uncle"): 0, ("", "the"): 100,
    }  # fmt: skip
    assert {pair: score("squad_em", pair[0], [pair[1]]) for pair in expected} == expected


def task_score(task: str, answer: str, *references: str, classes: tuple[str, ...] = ()) -> float:
    asked = question(references=references, task=task, classes=classes)
    assert METRICS["longbench"].applies(asked)
    return METRICS["longbench"].score(answer, asked)


@pytest.mark.parametrize(
    ("function", "metric", "task"),
    [
        ("qa_f1_score", "longbench_f1", "qasper"),
        ("rouge_score", "longbench_rouge", "gov_report"),
        ("qa_f1_zh_score", "longbench_f1_zh", "multifieldqa_zh"),
        ("rouge_zh_score", "longbench_rouge_zh", "vcsum"),
    ],
)
def test_longbench_is_the_authors(function: str, metric: str, task: str) -> None:
    values = json.loads((DATA / "authors_metrics.json").read_text(encoding="utf-8"))
    for answer, reference, expected in values["longbench"][function]:
        value = score(metric, answer, [reference])
        assert value == pytest.approx(100 * expected, abs=1e-4), (answer, reference)
        assert task_score(task, answer, reference) == value


def test_a_long_sentence_is_scored() -> None:
    """The package recurses once a word; LongBench's own score of it is 0."""
    text = " ".join(f"w{number}" for number in range(700))
    assert longbench_metrics.rouge(text, text) == pytest.approx(100)
    for answer, reference in (("...", "a b"), ("a b", "."), ("", "a")):
        assert longbench_metrics.rouge(answer, reference) == 0


@pytest.mark.parametrize(
    ("tasks", "answer", "references", "expected"),
    [
        ("trec lsht", "Type: Food", ["Food"], 100), ("trec lsht", "Food or Date", ["Food"], 50),
        ("trec lsht", "Date", ["Food"], 0), ("trec lsht", "no idea", ["Food"], 0),
        ("trec lsht", "food", ["Food"], 0), ("trec lsht", "Food", ["Date", "Food"], 100),
        # `location` is part of the right class; but the right class is part of another.
        ("trec lsht", "Other location", ["Other location"], 100),
        ("trec lsht", "Other location", ["location"], 50),
        # Of few-shot answers the first line alone counts.
        ("trec lsht", "\n\nFood\nQuestion: ...\nType: Date", ["Food"], 100),
        ("trec lsht", "Question\nFood", ["Food"], 0),
        ("triviaqa samsum", "\nParis\nQuestion: and Italy? Answer: Rome", ["Paris"], 100),
        ("hotpotqa", "\nParis\nQuestion: and Italy? Answer: Rome", ["Paris"], 200 / 7),
        ("hotpotqa", "Paris", ["Rome", "Paris"], 100),
        ("passage_retrieval_en", "Paragraph 7", ["Paragraph 7"], 100),
        ("passage_retrieval_en", "7, perhaps 17 or 7.", ["Paragraph 7"], 200 / 3),
        ("passage_retrieval_en", "Paragraph 07", ["Paragraph 7"], 0),
        ("passage_retrieval_en", "the seventh", ["Paragraph 7"], 0),
        ("passage_retrieval_zh", "段落3", ["段落3"], 100),
        ("passage_retrieval_zh", "不是段落1，是段落3", ["段落3"], 50),
        ("passage_count", "There are 12.", ["12"], 100), ("passage_count", "12 of 20", ["12"], 50),
        ("passage_count", "twelve", ["12"], 0),
        ("lcc repobench-p", "        return self.items[key]",
         ["        return self.items[name]"], 92),
        ("lcc repobench-p", "    public int getId() {", ["    public void setId(int id) {"], 76),
        ("lcc repobench-p", "ababab", ["aaaaab"], 33),  # 67 with python-Levenshtein
        ("lcc repobench-p", "\n\n# first\n```python\nx = 1 // 2\nx = 1\ny = 2", ["x = 1"], 100),
        ("lcc repobench-p", "# nothing else", ["x = 1"], 0),
    ],
)  # fmt: skip
def test_the_score_of_each_task(
    tasks: str, answer: str, references: list[str], expected: float
) -> None:
    classes = ("Date", "Food", "Other entity", "Other location", "location", "entity")
    for task in tasks.split():
        value = task_score(task, answer, *references, classes=classes)
        assert value == pytest.approx(expected)


def test_of_two_parts_of_the_right_class_in_a_row_the_second_counts() -> None:
    """LongBench removes `a` while it goes through a, ab, abc, and so never looks at `ab`."""
    assert longbench_metrics.classification("abc", "abc", ("a", "ab", "abc")) == 50
    assert longbench_metrics.classification("abc", "abc", ("a", "abc", "ab")) == 100


# Of languages that rouge-score's ASCII tokens leave nothing of a text, its words by hand, and an
# answer with half of its words and as many others.
TEXTS: dict[str, tuple[str, list[str], str]] = {
    "Chinese": ("他在北京。", ["他", "在", "北", "京"], "她住北京"),
    "Japanese": ("猫がいる。", ["猫", "が", "い", "る"], "犬もいる"),
    "Thai": ("กินปลา", ["กิ", "น", "ป", "ล", "า"], ""),
    "Arabic": ("الطاحونة قديمة جدا الآن.", ["الطاحونة", "قديمة", "جدا", "الآن"],
               "الطاحونة قديمة، أليس كذلك؟"),
    "Russian": ("Старая мельница у Реки!", ["старая", "мельница", "у", "реки"],
                "«Старая мельница» в лесу"),
    "Korean": ("오래된 방앗간은 강가에 있다.", ["오래된", "방앗간은", "강가에", "있다"],
               "오래된 방앗간은 산에 없다"),
    "Greek": ("Ο παλιός μύλος εδώ", ["ο", "παλιός", "μύλος", "εδώ"], "Ο παλιός δρόμος εκεί"),
    "Hindi": ("पुरानी चक्की नदी पर", ["पुरानी", "चक्की", "नदी", "पर"], "पुरानी चक्की वहाँ है"),
}  # fmt: skip
OVERLAP = ["rouge1_stem", "rouge2_stem", "rougeL_stem", "rougeLsum", "scrolls_rouge1",
           "scrolls_rouge2", "scrolls_rougeL", "longbench_f1", "squad_em"]  # fmt: skip


@pytest.mark.parametrize("language", TEXTS)
def test_words_and_scores_of_a_language(language: str) -> None:
    """An answer with two of four words, next to each other, at one end, has one of three pairs."""
    text, words, half = TEXTS[language]
    assert unicode_words(text) == words
    is_unspaced = language in ("Chinese", "Japanese", "Thai")
    assert writing_of(text) == ("unspaced" if is_unspaced else "spaced")
    assert is_chinese(text) == (language == "Chinese")
    for metric in OVERLAP:
        for answer in (text, f"{text.lower()} ..."):
            assert score(metric, answer, [text]) == pytest.approx(100), metric
    if half:
        values = {"rouge1_stem": 50, "rouge2_stem": 100 / 3, "rougeL_stem": 50, "longbench_f1": 50,
                  "squad_em": 0}  # fmt: skip
        assert {name: score(name, half, [text]) for name in values} == pytest.approx(values)


def test_most_words_decide_the_writing_and_characters_have_several_spellings() -> None:
    writings = {
        "": "latin", "42": "latin", "Beyoncé": "latin", "the α particle": "latin",
        "He wrote 北京 on it": "latin", "GPT-4 比 GPT-3 好得多": "unspaced", "3年": "unspaced",
        "город New": "latin", "в городе New": "spaced",
    }  # fmt: skip
    assert {text: writing_of(text) for text in writings} == writings
    # Full width; a dakuten and a breve of their own.
    assert unicode_words("ＡＢ１ \u304b\u3099 \u0438\u0306") == ["ab1", "\u304c", "\u0439"]


def test_which_metrics_apply() -> None:
    expected = {
        ("longbench_f1_zh", "Who?", "Peter"): False, ("longbench_f1_zh", "谁?", "Peter"): True,
        ("longbench_rouge_zh", "Who?", "彼得"): True,
        ("longbench_rouge_zh", "誰ですか?", "ピーター"): False,
        ("longbench_rouge_zh", "誰ですか?", "田中"): False,
        ("longbench_rouge", "Who?", "Peter"): True, ("longbench_rouge", "Кто?", "Пётр"): True,
        ("longbench_rouge", "谁?", "彼得"): False, ("rouge1_stem", "谁?", "彼得"): True,
    }  # fmt: skip
    for (metric, asked, reference), applies in expected.items():
        asking = question(text=asked, references=(reference,))
        assert METRICS[metric].applies(asking) is applies, (metric, asked, reference)
    no_task: dict[str, Any]
    for no_task in ({}, {"task": "mine"}, {"task": "trec"}):  # which lacks its classes
        assert not METRICS["longbench"].applies(question(references=("Food",), **no_task))


def test_the_measures_of_a_run_are_taken(tmp_path: Path) -> None:
    """Those of metrics and those that the tables' SQL makes, of readagent_p with a rater."""

    def brought(answer: str, reference: str) -> float:
        return 100.0 * (answer == reference)

    connection = connect(FinishedRun(tmp_path).warehouse, "night")
    rows = query(connection, "select distinct measure from measures")
    names = {row["measure"] for row in rows}
    assert {"lr_1", "lr_2", "squad_em", "compression_rate", "lookups", "length"} <= names
    for name in names:
        with pytest.raises(UsageError, match=rf"brought makes the measure '{name}', which is that"):
            MEASURES.add(name, brought)


@pytest.mark.usefixtures("registries")
@pytest.mark.parametrize(
    ("view", "whose"), [("readings", "stages.tables.answers.Answer"), ("runs", "every warehouse")]
)
def test_the_sql_of_a_table_names_no_view_that_there_is(
    tmp_path: Path, view: str, whose: str
) -> None:
    own = tmp_path / f"quotes_{view}"  # imported once
    shutil.copytree(ROOT / "tests" / "support" / "quote_plugin", own)
    sql = own / "quotes.sql"
    sql.write_text(sql.read_text().replace("quoted", view))
    with pytest.raises(UsageError) as refused:
        load_plugins([str(own)])
    line = str(refused.value)
    assert f"makes the table or view '{view}', which is that of {whose}" in line
    assert "gistmill_plugins.quotes_" in line and "\n" not in line
