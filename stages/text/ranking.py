"""Lexical ranking: stemmed terms, BM25 scores of texts for a query, centrality among texts."""

import math
import unicodedata
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import Literal, TypeVar

import numpy as np
import regex
import Stemmer
from rank_bm25 import BM25Okapi, BM25Plus
from stop_words import get_stop_words

from stages.text.words import CHARACTERS, SYLLABLES

Scores = np.ndarray[tuple[int], np.dtype[np.float64]]
T = TypeVar("T")
Ranking = Literal["plus_on_stems", "okapi_on_words", "okapi_on_spaces"]

# rank-bm25's defaults, stated here because the published baselines depend on them.
_K1, _B, _DELTA, _EPSILON = 1.5, 0.75, 1.0, 0.25
_ASCII_WORD = regex.compile("[a-z0-9]+")
_NO_ASCII_WORD = regex.compile(r"[\p{L}\p{M}\p{N}--\u0000-\u007f]", regex.V1)
# Letters with their marks. Latin letters go with ASCII digits; in other scripts numbers and names
# in ASCII stand apart. Thai, Lao, Burmese and Khmer have no space between words: marks part them.
# Apostrophes that are letters by Unicode (U+02B9 to U+02BF) part words, as ' and ’ do.
_MARKS = rf"[\p{{M}}--{CHARACTERS}{SYLLABLES}]"
_LATIN = r"[0-9[\p{Latin}&&\p{L}]--\uff00-\uffef]"  # without the wide letters of Chinese text
_OTHER = rf"[\p{{L}}\p{{N}}--\u0000-\u024f\u02b9-\u02bf{_LATIN}{CHARACTERS}]"
_WORD = regex.compile(
    rf"{_LATIN}[{_LATIN}{_MARKS}]*+|{_OTHER}[{_OTHER}{_MARKS}]*+|[{CHARACTERS}]", regex.V1
)
# `printed`: ligatures, contextual forms and other printed forms of common letters. The others are
# optional in a word: soft hyphens, joiners and other characters without width (in Khmer and the
# like they separate words), the dot of a Turkish capital I, vowel points of Hebrew and Arabic, the
# Arabic stroke that lengthens a line, the stress mark of a Russian word.
_VARIANT = regex.compile(
    r"(?P<printed>[\u00b5\u0132\u0133\u013f\u0140\u0149\u017f\u01c4-\u01cc\u01f1-\u01f3"
    r"\ufb00-\ufdff\ufe80-\ufefc])"
    rf"|\p{{Default_Ignorable_Code_Point}}(?<![{SYLLABLES}].)|\u0307(?<=i.)"
    r"|[[\u0591-\u05c7&&\p{M}]\u0640\u064b-\u065f\u0670\ufe70-\ufe7f]"
    r"|[\u0300\u0301](?<=\p{Cyrillic}.)",
    regex.V1,
)
# The list has "don't", which is split at the apostrophe: the stop words are split likewise.
_STOP_WORDS = frozenset(part for word in get_stop_words("en") for part in _ASCII_WORD.findall(word))
_STEMMER, _STEMMING = Stemmer.Stemmer("porter"), Lock()  # it serves one thread at a time
_INDEXES = 16  # few documents are in flight in a worker; a book's index takes megabytes
_LONG_TERM = 12  # characters; few stems are longer, but web addresses and hashes are


def _built_once(build: Callable[..., T]) -> Callable[..., T]:
    """Cache the last results of `build`, one thread at a time, as methods that read the same pages
    ask for the same index, often at once."""
    built, building = lru_cache(maxsize=_INDEXES)(build), Lock()

    def get(*args: Hashable) -> T:
        with building:
            return built(*args)

    return get


@lru_cache(maxsize=16_384)  # mostly sentences; a page takes a few kilobytes
def terms(text: str) -> tuple[str, ...]:
    """Porter stems of the lower-case words of `text` in order, without English stop words."""
    folded = _folded(text)
    is_ascii = folded.isascii() or not _NO_ASCII_WORD.search(folded)  # but for its quotes
    words = (_ASCII_WORD if is_ascii else _WORD).findall(folded)
    with _STEMMING:
        return tuple(_STEMMER.stemWords([word for word in words if word not in _STOP_WORDS]))


def _folded(text: str) -> str:
    """The text in lower case and in Unicode's NFC, with spelling variants of a word made equal."""
    lower = text.lower()
    if lower.isascii():
        return lower

    def common(variant: regex.Match[str]) -> str:
        return unicodedata.normalize("NFKC", variant["printed"] or "")

    return str(_VARIANT.sub(common, unicodedata.normalize("NFC", lower)))


def rank(texts: Sequence[str], query: str) -> list[int]:
    """Indexes of `texts` by BM25Plus for `query`, best first, ties to the lower index."""
    return [index for index, _ in ranking("plus_on_stems", texts, query)]


def best_first(scores: Scores) -> list[int]:
    """The indexes of the scores, highest first, ties to the lower index."""
    return sorted(range(len(scores)), key=lambda index: -scores[index])


def ranking(bm25: Ranking, texts: Sequence[str], query: str) -> list[tuple[int, float]]:
    """The index and the score of each of `texts` by BM25 for `query`, best first. Ties go to the
    lower index, except with okapi_on_spaces.

    plus_on_stems: BM25Plus on stems without stop words. okapi_on_words: Okapi on lower-case words
    between white space; as rank_bm25 computes it, a word in half of the texts or more may count
    less than a word in none. okapi_on_spaces: Okapi on words between single spaces, case kept, in
    reversed order of numpy's argsort, as LongMemEval has it (xiaowu0162/LongMemEval,
    run_retrieval.py).
    """
    if bm25 == "plus_on_stems":
        # Pages have a cache of their own: they stay cached for all questions of their document and
        # are not displaced by the sentences of single questions.
        scores = _plus(_index_of_pages(tuple(texts)), query)
        order = best_first(scores)
    else:
        okapi = _okapi_index(bm25, tuple(texts))
        scores = okapi.get_scores(_split(bm25, query)) if okapi else np.zeros(len(texts))
        if bm25 == "okapi_on_spaces":
            order = np.argsort(scores)[::-1].tolist()
        else:
            scores = np.round(scores, 9)  # so that equal texts tie
            order = best_first(scores)
    return [(index, float(scores[index])) for index in order]


@_built_once
def _okapi_index(bm25: Ranking, texts: tuple[str, ...]) -> BM25Okapi | None:
    """None where there is not a single word."""
    split = [_split(bm25, text) for text in texts]
    return BM25Okapi(split, k1=_K1, b=_B, epsilon=_EPSILON) if any(map(any, split)) else None


def _split(bm25: Ranking, text: str) -> list[str]:
    return text.split(" ") if bm25 == "okapi_on_spaces" else _folded(text).split()


def relevance(texts: Sequence[str], query: str) -> Scores:
    """The BM25Plus score of each text for `query`, in the order of `texts`; 0 is no match."""
    return _plus(_index(tuple(texts)), query)


def _plus(index: "_TermIndex", query: str) -> Scores:
    shared = [term for term in terms(query) if term in index.num_texts_with]
    if index.bm25 is None or not shared:
        return np.zeros(len(index.centrality))
    # BM25Plus gives every text the same base score for each term; that part is subtracted.
    same_for_all = _DELTA * sum(index.bm25.idf[term] for term in shared)
    # Rounded so that equal texts tie despite floating-point differences in the sums.
    return np.asarray(np.round(index.bm25.get_scores(shared) - same_for_all, 9), dtype=np.float64)


def centrality(texts: Sequence[str]) -> Scores:
    """How much each text shares with the others, 0 to 1: the sum over its distinct terms of log(1 +
    number of texts with the term), over the largest such sum."""
    return _index(tuple(texts)).centrality


def weights(texts: Sequence[str]) -> dict[str, float]:
    """The weight of each term: its length in characters x log(1 + number of texts with it), since
    "yeah", "know" and "like" are no stop words, but occur everywhere."""
    counts = _num_texts_with(texts).items()
    return {term: min(len(term), _LONG_TERM) * math.log1p(n) for term, n in counts}


@dataclass(frozen=True, slots=True)
class _TermIndex:
    bm25: BM25Plus | None  # None: the texts have no terms
    num_texts_with: Counter[str]
    centrality: Scores


def _indexed(texts: tuple[str, ...]) -> _TermIndex:
    split = [terms(text) for text in texts]
    num_texts_with = _num_texts_with(texts)
    bm25 = BM25Plus(split, k1=_K1, b=_B, delta=_DELTA) if num_texts_with else None
    weight = {term: math.log1p(num) for term, num in num_texts_with.items()}
    sums = [sum(map(weight.__getitem__, dict.fromkeys(part))) for part in split]
    most = max(sums, default=0.0) or 1.0
    return _TermIndex(bm25, num_texts_with, np.array(sums, dtype=np.float64) / most)


_index, _index_of_pages = _built_once(_indexed), _built_once(_indexed)


def _num_texts_with(texts: Sequence[str]) -> Counter[str]:
    return Counter(term for text in texts for term in dict.fromkeys(terms(text)))
