"""Words and scores of languages that rouge-score's ASCII tokens leave nothing of."""

import pytest

from stages.score.metrics import METRICS, is_chinese, unicode_words, writing_of
from tests.support.reading import question

# Language: a text, its words by hand, an answer with half of its words and as many others.
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
languages = pytest.mark.parametrize("language", TEXTS)


def score(metric: str, answer: str, reference: str) -> float:
    return METRICS[metric].score(answer, question(references=(reference,)))


@languages
def test_words_by_hand(language: str) -> None:
    text, words, _ = TEXTS[language]
    assert unicode_words(text) == words
    assert writing_of(text) == (
        "unspaced" if language in ("Chinese", "Japanese", "Thai") else "spaced"
    )
    assert is_chinese(text) == (language == "Chinese")


@languages
@pytest.mark.parametrize("metric", OVERLAP)
def test_the_same_text_scores_100(language: str, metric: str) -> None:
    text = TEXTS[language][0]
    assert score(metric, text, text) == pytest.approx(100)
    assert score(metric, f"{text.lower()} ...", text) == pytest.approx(100)


@pytest.mark.parametrize("language", sorted({*TEXTS} - {"Thai"}))
def test_half_of_the_words_score_50(language: str) -> None:
    """Two of four words, next to each other, at one end: one of three pairs of words."""
    text, _, other = TEXTS[language]
    expected = {"rouge1_stem": 50, "rouge2_stem": 100 / 3, "rougeL_stem": 50, "longbench_f1": 50,
                "squad_em": 0}  # fmt: skip
    assert {metric: score(metric, other, text) for metric in expected} == pytest.approx(expected)


def test_other_spellings_of_the_same_characters() -> None:
    assert unicode_words("ＡＢ１ が") == ["ab1", "が"]  # full width; a dakuten of its own
    assert unicode_words("й, й") == ["й", "й"]


@pytest.mark.parametrize(
    ("text", "writing"),
    [
        ("", "latin"), ("42", "latin"), ("Beyoncé", "latin"), ("the α particle", "latin"),
        ("He wrote 北京 on it", "latin"), ("GPT-4 比 GPT-3 好得多", "unspaced"),
        ("3年", "unspaced"), ("город New", "latin"), ("в городе New", "spaced"),
    ],
)  # fmt: skip
def test_most_words_decide(text: str, writing: str) -> None:
    assert writing_of(text) == writing


@pytest.mark.parametrize(
    ("metric", "asked", "reference", "applies"),
    [
        ("longbench_f1_zh", "Who?", "Peter", False),
        ("longbench_f1_zh", "谁?", "Peter", True),
        ("longbench_rouge_zh", "Who?", "彼得", True),
        ("longbench_rouge_zh", "誰ですか?", "ピーター", False),
        ("longbench_rouge_zh", "誰ですか?", "田中", False),
        ("longbench_rouge", "Who?", "Peter", True),
        ("longbench_rouge", "Кто?", "Пётр", True),
        ("longbench_rouge", "谁?", "彼得", False),
        ("rouge1_stem", "谁?", "彼得", True),
    ],
)
def test_which_metrics_apply(metric: str, asked: str, reference: str, applies: bool) -> None:
    assert METRICS[metric].applies(question(text=asked, references=(reference,))) is applies
