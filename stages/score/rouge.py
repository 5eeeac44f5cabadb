"""ROUGE's F-measures of one answer and one reference, 0-100, by the package rouge-score.

Its tokens are runs of ASCII letters and digits, so texts in other letters would have none and score
0. Where answer or reference is mostly in such letters both are split into `unicode_words`, without
stems: Porter's are English. All else has rouge-score's own values.
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache, lru_cache
from types import SimpleNamespace
from typing import Any

from stages.text.languages import unicode_words, writing_of
from stages.text.paragraphs import sentence_spans

KINDS = ("rouge1", "rouge2", "rougeL")
_WORDS = 65_536  # whose stems are remembered


@lru_cache(maxsize=16)  # the three kinds of one answer are asked for one after the other
def rouge(answer: str, reference: str, stem: bool) -> Mapping[str, float]:
    """ROUGE-1, -2 and -L, by the names in KINDS."""
    scores = _scorer(KINDS, stem, is_latin(answer, reference)).score(reference, answer)
    return {kind: 100 * scores[kind].fmeasure for kind in KINDS}


def rouge_l_sum(answer: str, reference: str) -> float:
    """ROUGE-Lsum with stemming: the longest common subsequence sentence by sentence."""
    scorer = _scorer(("rougeLsum",), True, is_latin(answer, reference))
    score = scorer.score(_sentence_lines(reference), _sentence_lines(answer))["rougeLsum"]
    return float(100 * score.fmeasure)


def is_latin(*texts: str) -> bool:
    """True if all are mostly in Latin letters: English tokenization is for these."""
    return all(writing_of(text) == "latin" for text in texts)


@cache
def _scorer(kinds: tuple[str, ...], stem: bool, latin: bool) -> Any:
    with _hidden("scipy", "sklearn"):  # only scoring needs these, and they bring in much
        from nltk.stem.porter import PorterStemmer
        from rouge_score.rouge_scorer import RougeScorer
        from rouge_score.tokenize import tokenize

    if not latin:
        return RougeScorer(list(kinds), tokenizer=SimpleNamespace(tokenize=unicode_words))
    if not stem:
        return RougeScorer(list(kinds))
    stemmer = PorterStemmer()  # the package's own; it takes half of the time unless it remembers
    stemmer.stem = lru_cache(maxsize=_WORDS)(stemmer.stem)
    own = SimpleNamespace(tokenize=lambda text: tokenize(text, stemmer))
    return RougeScorer(list(kinds), tokenizer=own)


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


def _sentence_lines(text: str) -> str:
    """`text` with one sentence a line, as rougeLsum takes it."""
    sentences = (" ".join(text[start:end].split()) for start, end in sentence_spans(text))
    return "\n".join(sentence for sentence in sentences if sentence)
