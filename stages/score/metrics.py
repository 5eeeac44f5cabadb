"""Metrics of one answer against its references, 0-100, and overlaps of spans. Pure functions.

Metric names carry the variant, because papers mean different things by "ROUGE-L" or "F1". Of
several references the best counts; every metric raises ValueError without references. Which answers
are scored is decided in score.py.
"""

import re
import string
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from statistics import geometric_mean
from types import SimpleNamespace
from typing import Any

from pipeline.rows import Span
from stages.text.paragraphs import sentence_spans

Metric = Callable[[str, Sequence[str]], float]
_KINDS = ("rouge1", "rouge2", "rougeL")
_WORDS = 65_536  # words whose stems are cached
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def scrolls_rouge(answer: str, references: Sequence[str]) -> float:
    """Geometric mean of ROUGE-1, -2 and -L without stemming, as in SCROLLS; 0 if one of them is 0.

    Each of the three is the best over references by itself.
    """
    best = [max(_rouge(answer, r, False)[kind] for r in references) for kind in _KINDS]
    return geometric_mean(best) if all(best) else 0.0


def rouge_l_sum(answer: str, references: Sequence[str]) -> float:
    """ROUGE-Lsum with stemming: union of the longest common subsequences, by sentence."""
    scorer = _scorer(("rougeLsum",), True)
    made = _sentence_lines(answer)
    scores = (scorer.score(_sentence_lines(r), made)["rougeLsum"].fmeasure for r in references)
    return float(100 * max(scores))


def longbench_f1(answer: str, references: Sequence[str]) -> float:
    """F1 of the multisets of normalized words, as in SQuAD and LongBench (English)."""
    return 100 * max(_token_f1(_normal_words(answer), _normal_words(r)) for r in references)


def squad_em(answer: str, references: Sequence[str]) -> float:
    """Exact match as in SQuAD: 100 if the normalized words equal a reference's, else 0."""
    words = _normal_words(answer)
    return 100.0 * any(words == _normal_words(reference) for reference in references)


def covered_chars(gold: Sequence[Span], read: Sequence[Span]) -> int:
    """The number of characters of `gold` that are in `read`. Spans may overlap."""
    mine, theirs = _merged(gold), _merged(read)
    return sum(
        max(0, min(a.end_char, b.end_char) - max(a.start_char, b.start_char))
        for a in mine
        for b in theirs
    )


def _stemmed(kind: str) -> Metric:
    """ROUGE F-measure with Porter stems; `kind`: rouge1, rouge2 or rougeL."""

    def metric(answer: str, references: Sequence[str]) -> float:
        return max(_rouge(answer, reference, True)[kind] for reference in references)

    return metric


METRICS: dict[str, Metric] = {
    "rouge1_stem": _stemmed("rouge1"),
    "rouge2_stem": _stemmed("rouge2"),
    "rougeL_stem": _stemmed("rougeL"),
    "rougeLsum": rouge_l_sum,
    "scrolls_rouge": scrolls_rouge,
    "longbench_f1": longbench_f1,
    "squad_em": squad_em,
}


@lru_cache(maxsize=16)  # the three kinds of one answer are computed by consecutive calls
def _rouge(answer: str, reference: str, stem: bool) -> Mapping[str, float]:
    scores = _scorer(_KINDS, stem).score(reference, answer)
    return {kind: 100 * scores[kind].fmeasure for kind in _KINDS}


@cache
def _scorer(kinds: tuple[str, ...], stem: bool) -> Any:
    with _hidden("scipy", "sklearn"):  # imported here: slow, and only scoring needs them
        from nltk.stem.porter import PorterStemmer
        from rouge_score.rouge_scorer import RougeScorer
        from rouge_score.tokenize import tokenize

    if not stem:
        return RougeScorer(list(kinds))
    stemmer = PorterStemmer()  # rouge_score's default; uncached it takes half of the time
    stemmer.stem = lru_cache(maxsize=_WORDS)(stemmer.stem)
    own = SimpleNamespace(tokenize=lambda text: tokenize(text, stemmer))
    return RougeScorer(list(kinds), tokenizer=own)


@contextmanager
def _hidden(*packages: str) -> Iterator[None]:
    """Block the import of `packages`, unless they are imported already.

    nltk imports them if installed, for parts that scoring never uses; that would be most of the CPU
    time of a scoring worker's start.
    """
    absent = dict.fromkeys(package for package in packages if package not in sys.modules)
    sys.modules.update(absent)  # type: ignore[arg-type]  # None makes an import fail
    try:
        yield
    finally:
        for package in absent:
            sys.modules.pop(package, None)


def _sentence_lines(text: str) -> str:
    """`text` with one sentence per line, as rougeLsum expects it."""
    sentences = (" ".join(text[start:end].split()) for start, end in sentence_spans(text))
    return "\n".join(sentence for sentence in sentences if sentence)


def _normal_words(text: str) -> list[str]:
    """Lower-case words without ASCII punctuation and articles."""
    bare = text.lower().translate(_PUNCTUATION)
    return re.sub(r"\b(?:a|an|the)\b", " ", bare).split()


def _token_f1(made: Sequence[str], wanted: Sequence[str]) -> float:
    shared = sum((Counter(made) & Counter(wanted)).values())
    return 2 * shared / (len(made) + len(wanted)) if shared else 0.0


def _merged(spans: Sequence[Span]) -> list[Span]:
    """The same characters as disjoint, sorted spans."""
    merged: list[Span] = []
    for span in sorted(spans, key=lambda s: (s.start_char, s.end_char)):
        if merged and span.start_char <= merged[-1].end_char:
            end_char = max(merged[-1].end_char, span.end_char)
            merged[-1] = Span(merged[-1].start_char, end_char)
        elif span.end_char > span.start_char:
            merged.append(span)
    return merged
