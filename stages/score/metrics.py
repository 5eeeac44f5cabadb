"""Our metrics of answers, 0-100, by name, and the questions that each applies to.

Metric names carry the variant, because papers mean different things by "ROUGE-L" or "F1". Of
several references the best counts. Which answers are scored is decided in score.py.

ROUGE is by the package rouge-score. Its tokens are runs of ASCII letters and digits, so texts in
other letters would have none and score 0. Where answer or reference is mostly in such letters both
are split into `unicode_words`, without stems: Porter's are English. All else has rouge-score's own
values.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, lru_cache, partial
from types import SimpleNamespace
from typing import Any

from pipeline.core.rows import Question
from stages.score import longbench_metrics, rouge_lcs
from stages.score.metric_functions import metric
from stages.text.languages import is_chinese, unicode_words, writing_of
from stages.text.words import sentence_spans

KINDS = ("rouge1", "rouge2", "rougeL")
_OF_NGRAMS = ("rouge1", "rouge2")
_WORDS = 65_536  # whose stems are remembered
Tokenize = Callable[[str], list[str]]


# The three kinds of one answer are asked for one after the other, by several threads at once.
@lru_cache(maxsize=64)
def rouge(answer: str, reference: str, stem: bool) -> Mapping[str, float]:
    """ROUGE-1, -2 and -L, by the names in KINDS."""
    tokens = _tokens(stem, is_latin(answer, reference))
    scores = _ngram_scorer(tokens).score(reference, answer)
    values = {kind: scores[kind].fmeasure for kind in _OF_NGRAMS}
    values["rougeL"] = rouge_lcs.rouge_l(tokens(reference), tokens(answer))
    return {kind: 100 * values[kind] for kind in KINDS}


def rouge_l_sum(answer: str, reference: str) -> float:
    """ROUGE-Lsum with stemming: the longest common subsequence sentence by sentence."""
    tokens = _tokens(True, is_latin(answer, reference))
    texts = ([tokens(sentence) for sentence in _sentences(text)] for text in (reference, answer))
    return 100 * rouge_lcs.rouge_l_sum(*texts)


def is_latin(*texts: str) -> bool:
    """True if all are mostly in Latin letters: English tokenization is for these."""
    return all(writing_of(text) == "latin" for text in texts)


@cache
def load_rouge() -> None:
    """Import what ROUGE needs. In the thread of the event loop, before scores are made in others:
    while it is imported no other thread can import scipy."""
    with _hidden("scipy", "sklearn"):  # only scoring needs these, and they bring in much
        import rouge_score.rouge_scorer  # noqa: F401


@cache
def _ngram_scorer(tokens: Tokenize) -> Any:
    load_rouge()
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(list(_OF_NGRAMS), tokenizer=SimpleNamespace(tokenize=tokens))


@cache
def _tokens(stem: bool, latin: bool) -> Tokenize:
    """The tokens of a text, remembered for a few texts: an answer's are asked for several times."""
    load_rouge()
    from nltk.stem.porter import PorterStemmer
    from rouge_score.tokenize import tokenize

    if not latin:
        return lru_cache(maxsize=64)(unicode_words)
    if not stem:
        return lru_cache(maxsize=64)(partial(tokenize, stemmer=None))
    stemmer = PorterStemmer()  # the package's own; it takes half of the time unless it remembers
    stemmer.stem = lru_cache(maxsize=_WORDS)(stemmer.stem)
    return lru_cache(maxsize=64)(partial(tokenize, stemmer=stemmer))


@contextmanager
def _hidden(*packages: str) -> Iterator[None]:
    """Within it the packages cannot be imported, unless they already are.

    nltk imports them where they are installed, for parts that scoring never uses: that would be
    most of the CPU time that a scoring worker needs to start.
    """
    absent = dict.fromkeys(package for package in packages if package not in sys.modules)
    sys.modules.update(absent)  # type: ignore[arg-type]  # None: a module not to be found
    try:
        yield
    finally:
        for package in absent:
            sys.modules.pop(package, None)


def _sentences(text: str) -> list[str]:
    """The sentences that rougeLsum compares."""
    found = (" ".join(text[start:end].split()) for start, end in sentence_spans(text))
    return [sentence for sentence in found if sentence]


def longbench_f1(answer: str, reference: str) -> float:
    """F1 of the multisets of normalized words, as in SQuAD and LongBench (English).

    In other letters than Latin: of `unicode_words`, so every Chinese character is one.
    """
    return longbench_metrics.token_f1(_words(answer, reference), _words(reference, answer))


def squad_em(answer: str, reference: str) -> float:
    """100 where the words, normalized likewise, are those of the reference in order; else 0."""
    return 100.0 * (_words(answer, reference) == _words(reference, answer))


def _words(text: str, other: str) -> list[str]:
    return longbench_metrics.normal_words(text) if is_latin(text, other) else unicode_words(text)


def _rouge(kind: str, stem: bool) -> Callable[[str, str], float]:
    return lambda answer, reference: rouge(answer, reference, stem)[kind]


def _has_chinese(question: Question) -> bool:
    """An answer may be a year or a foreign name: then the question is in Chinese."""
    return is_chinese(" ".join((question.question, *question.references)))


def _has_spaces(question: Question) -> bool:
    return all(writing_of(reference) != "unspaced" for reference in question.references)


# A metric that is the geometric mean of the means of these over the questions, as SCROLLS takes it
# of ROUGE-1, -2 and -L without stems; the mean of each answer's geometric mean would be lower.
PARTS = {"scrolls_rouge": tuple(f"scrolls_{kind}" for kind in KINDS)}

ABOUT_PARTS = {
    "scrolls_rouge": "geometric mean of the means of ROUGE-1, -2, -L F without stems (SCROLLS)"
}

_ROUGE = "{} F-measure of the package rouge-score, {}; the best of the references"
_SQUAD = "after SQuAD's normalization; the best of the references"
for _kind in KINDS:
    metric(f"{_kind}_stem", about=_ROUGE.format(_kind, "Porter stems"))(_rouge(_kind, True))
    metric(f"scrolls_{_kind}", about=_ROUGE.format(_kind, "no stems"))(_rouge(_kind, False))
metric("rougeLsum", about=_ROUGE.format("ROUGE-L", "summary level"))(rouge_l_sum)
metric("squad_em", about=f"exact match {_SQUAD}")(squad_em)
metric("longbench_f1", about=f"F1 of words {_SQUAD}")(longbench_f1)
metric(
    "longbench_f1_zh",
    applies=_has_chinese,
    about="LongBench's F1 of jieba's words, of Chinese alone",
)(longbench_metrics.f1_zh)
metric("longbench_rouge", applies=_has_spaces, about="LongBench's ROUGE-L F of the package rouge")(
    longbench_metrics.rouge
)
metric(
    "longbench_rouge_zh",
    applies=_has_chinese,
    about="LongBench's ROUGE-L F of jieba's words, of Chinese alone",
)(longbench_metrics.rouge_zh)
metric(
    "longbench",
    applies=longbench_metrics.has_task,
    of_question=True,
    about="LongBench's own score of each question's task",
)(longbench_metrics.of_task)
