"""The metrics of answers, 0-100, by name; score.py decides which answers are scored.

Names carry the variant, because papers mean different things by "ROUGE-L" or "F1". The tokens of
the package rouge-score are runs of ASCII letters and digits, so texts in other scripts would score
0. Where answer or reference is mostly in another script, both are split into `unicode_words`,
without stems, as Porter's are English. All other values of ROUGE are rouge-score's own.
"""

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from numbers import Real
from types import SimpleNamespace
from typing import Any, Literal, TypeVar

import regex

from pipeline.core.errors import UsageError
from pipeline.core.registry import Registry, file_of, first_sentence, is_ours
from pipeline.core.rows import Question
from pipeline.work.stage import MEASURES
from stages.score import longbench_metrics
from stages.text.words import CHARACTERS, SYLLABLES, sentence_spans, words_in_common

_MOST = 100 + 1e-6  # with the error of floating point
METRICS: "Registry[Metric]" = Registry("is the metric {!r}", "metrics")
Function = TypeVar("Function", bound=Callable[..., float])


@dataclass(frozen=True, slots=True)
class Metric:
    """A registered function. `version` and `groups` are as in `metric`."""

    score: Callable[[str, Question], float]
    applies: Callable[[Question], bool]
    version: int | None
    groups: tuple[str, ...]
    function: Callable[..., float]


def metric(
    name: str,
    *,
    applies: Callable[[Question], bool] = lambda question: True,
    of_question: bool = False,
    about: str = "",
    version: int | None = None,
    groups: tuple[str, ...] = (),
) -> Callable[[Function], Function]:
    """Register a function as a metric, which the `metrics` of a family's settings may name
    (docs/extending.md has an example).

    The function returns 0 to 100; the best of several references counts. With `of_question` it gets
    the Question in place of a reference. `applies` says which questions it scores. `about` is its
    description, by default its docstring's first sentence. A plugin's metric needs a `version`,
    raised when its values change meaning.

    `groups` names a key of questions' metadata, such as the episode that a question is a step of.
    The report's mean is then over groups, each of which counts as the mean of its questions. With a
    second key, which holds the number of a group's questions, each counts as its lowest value, and
    as 0 if one has no value. Raises UsageError, naming the file, for a plugin's metric without a
    version, and for a name that another measure has.
    """

    def add(function: Function) -> Function:
        MEASURES.add(name, function)
        place = f"{file_of(function)}: the metric {name}"
        if version is None and not is_ours(function):
            raise UsageError(f"{place} has no version; write `@metric({name!r}, version=1)`")

        def checked(answer: str, right: Any) -> float:
            value = function(answer, right)
            is_number = isinstance(value, Real) and not isinstance(value, bool)
            if not is_number or not 0 <= float(value) <= _MOST:
                raise TypeError(f"{place} returned {repr(value)[:40]}; return 0 to 100")
            return float(value)

        def score(answer: str, question: Question) -> float:
            if of_question:
                return checked(answer, question)
            return max(checked(answer, reference) for reference in question.references)

        registered = Metric(score, applies, version, groups, function)
        METRICS.add(name, registered, about or first_sentence(function))
        return function

    return add


KINDS = ("rouge1", "rouge2", "rougeL")
_WORDS = 65_536  # whose stems are remembered
Tokenize = Callable[[str], list[str]]


# The three kinds of one answer are asked for one after the other, by several threads at once.
@lru_cache(maxsize=64)
def rouge(answer: str, reference: str, stem: bool) -> Mapping[str, float]:
    """ROUGE-1, -2 and -L, by the names in KINDS."""
    tokens = _tokens(stem, is_latin(answer, reference))
    scores = _scorer(tokens, "rouge1", "rouge2").score(reference, answer)
    values = {kind: 100 * score.fmeasure for kind, score in scores.items()}
    return {**values, "rougeL": 100 * rouge_l(tokens(reference), tokens(answer))}


def rouge_l(reference: Sequence[str], answer: Sequence[str]) -> float:
    """The F-measure, 0-1, of the longest common subsequence of tokens, computed in rouge-score's
    order of operations, as another order differs in the last digit, but without its table in
    Python."""
    if not (shared := words_in_common(reference, answer)):
        return 0.0
    precision, recall = shared / len(answer), shared / len(reference)
    return 2 * precision * recall / (precision + recall)


def rouge_l_sum(answer: str, reference: str) -> float:
    """ROUGE-Lsum with stemming: the longest common subsequence sentence by sentence."""
    scorer = _scorer(_tokens(True, is_latin(answer, reference)), "rougeLsum")
    texts = (
        "\n".join(" ".join(text[start:end].split()) for start, end in sentence_spans(text))
        for text in (reference, answer)
    )
    return float(100 * scorer.score(*texts)["rougeLsum"].fmeasure)


# Words of any language, without word lists. Page sizes and compression count `words.num_words`
# instead: those words keep their punctuation.
Writing = Literal["latin", "spaced", "unspaced"]
_ALONE = rf"[[{CHARACTERS}{SYLLABLES}]&&[\p{{L}}\p{{N}}]]"
_BARE_WORD = regex.compile(rf"(?V1){_ALONE}\p{{M}}*|(?:(?!{_ALONE})[\p{{L}}\p{{M}}\p{{N}}])+")
_LONE_SIGN = regex.compile(rf"(?V1){_ALONE}")
_LATIN, _LETTER = regex.compile(r"\p{Latin}"), regex.compile(r"\p{L}")
_HAN, _KANA = regex.compile(r"\p{Han}"), regex.compile(r"[\p{Hiragana}\p{Katakana}]")


def unicode_words(text: str) -> list[str]:
    """Lower-case words without punctuation after Unicode's NFKC: runs of letters, marks and digits;
    in scripts without spaces every character with its marks."""
    return list(_BARE_WORD.findall(unicodedata.normalize("NFKC", text).lower()))


@lru_cache(maxsize=4096)  # the same references are read for every method
def writing_of(text: str) -> Writing:
    """The writing of most words of `text`: Latin letters (also for texts without letters),
    others with spaces between words (Cyrillic, Arabic, Korean ...), or without (Chinese, Thai
    ...)."""
    if text.isascii():
        return "latin"
    words = [word for word in unicode_words(text) if _LETTER.search(word)]
    num_latin = sum(1 for word in words if _LATIN.search(word))
    if 2 * num_latin >= len(words):
        return "latin"
    num_unspaced = sum(1 for word in words if _LONE_SIGN.search(word))
    return "unspaced" if 2 * num_unspaced > len(words) - num_latin else "spaced"


def is_chinese(text: str) -> bool:
    """True for Chinese characters without kana, which Japanese has."""
    return bool(_HAN.search(text)) and not _KANA.search(text)


def is_latin(*texts: str) -> bool:
    """True if all are mostly in Latin letters, which English tokenization is for."""
    return all(writing_of(text) == "latin" for text in texts)


@cache
def _scorer(tokens: Tokenize, *kinds: str) -> Any:
    from rouge_score.rouge_scorer import RougeScorer  # here: only scoring needs it, and it is slow

    return RougeScorer(list(kinds), tokenizer=SimpleNamespace(tokenize=tokens))


@cache
def _tokens(stem: bool, latin: bool) -> Tokenize:
    """The tokenizer, which remembers a few texts: an answer is tokenized several times."""
    from nltk.stem.porter import PorterStemmer
    from rouge_score.tokenize import tokenize

    if not latin:
        return lru_cache(maxsize=64)(unicode_words)
    if not stem:
        return lru_cache(maxsize=64)(partial(tokenize, stemmer=None))
    stemmer = PorterStemmer()  # the package's own; it takes half of the time unless it remembers
    stemmer.stem = lru_cache(maxsize=_WORDS)(stemmer.stem)
    return lru_cache(maxsize=64)(partial(tokenize, stemmer=stemmer))


def longbench_f1(answer: str, reference: str) -> float:
    """F1 of the multisets of normalized words, as in SQuAD and LongBench (English); in other
    letters than Latin of `unicode_words`, so every Chinese character is one."""
    return longbench_metrics.token_f1(_words(answer, reference), _words(reference, answer))


def squad_em(answer: str, reference: str) -> float:
    """100 where the words, normalized likewise, are those of the reference in order; else 0."""
    return 100.0 * (_words(answer, reference) == _words(reference, answer))


def _words(text: str, other: str) -> list[str]:
    return longbench_metrics.normal_words(text) if is_latin(text, other) else unicode_words(text)


def _rouge(kind: str, stem: bool) -> Callable[[str, str], float]:
    return lambda answer, reference: rouge(answer, reference, stem)[kind]


def _has_chinese(question: Question) -> bool:
    """Looks at the question, too, as the answer may be a year or a foreign name."""
    return is_chinese(" ".join((question.question, *question.references)))


def _has_spaces(question: Question) -> bool:
    return all(writing_of(reference) != "unspaced" for reference in question.references)


# Metrics that are the geometric mean of these metrics' means over the questions, as in SCROLLS (for
# ROUGE-1, -2 and -L without stems); the mean of each answer's geometric mean would be lower.
PARTS = {"scrolls_rouge": tuple(f"scrolls_{kind}" for kind in KINDS)}
METRICS.about["scrolls_rouge"] = (
    "geometric mean of the means of ROUGE-1, -2, -L F without stems (SCROLLS)"
)

_ROUGE = "{} F-measure of the package rouge-score, {}; the best of the references"
_SQUAD = "after SQuAD's normalization; the best of the references"
_CHINESE = "of jieba's words, of Chinese alone"
for _kind in KINDS:
    metric(f"{_kind}_stem", about=_ROUGE.format(_kind, "Porter stems"))(_rouge(_kind, True))
    metric(f"scrolls_{_kind}", about=_ROUGE.format(_kind, "no stems"))(_rouge(_kind, False))
metric("rougeLsum", about=_ROUGE.format("ROUGE-L", "summary level"))(rouge_l_sum)
metric("squad_em", about=f"exact match {_SQUAD}")(squad_em)
metric("longbench_f1", about=f"F1 of words {_SQUAD}")(longbench_f1)
for _name, _function, _applies, _about in (
    ("longbench_f1_zh", longbench_metrics.f1_zh, _has_chinese, f"F1 {_CHINESE}"),
    ("longbench_rouge", longbench_metrics.rouge, _has_spaces, "ROUGE-L F of the package rouge"),
    ("longbench_rouge_zh", longbench_metrics.rouge_zh, _has_chinese, f"ROUGE-L F {_CHINESE}"),
):
    metric(_name, applies=_applies, about=f"LongBench's {_about}")(_function)
metric(
    "longbench",
    applies=longbench_metrics.has_task,
    of_question=True,
    about="LongBench's own score of each question's task",
)(longbench_metrics.of_task)
