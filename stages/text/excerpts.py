"""Whole sentences taken from texts: a page's gist, and what answers a question. No model.

What is taken stands in its old order, without `{vocalsound}`-like tags and line breaks. Words are
those of `ranking.num_words`. Constants were tuned on QMSum val, by recall and length, not answers.
"""

import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

from stages.text.paragraphs import sentence_spans
from stages.text.ranking import centrality, relevance, terms, weights
from stages.text.words import num_words, word_spans

_TAG = re.compile(r"\{[^{}]*\}")
_CLAUSE_END = re.compile(r"[,;:，；：、]\s*|\s+[-–—]+\s+")
_ENDED = re.compile(r"[.!?…。！？][\"'”’」』）)\]]*$")
_WHOLE_WORDS = 60  # a shorter page is its own gist
_LONG_PAGE = 200  # a shorter one may be told by its first sentences
_GIST_SHARE = 0.155  # 67 of 430 words
_GIST_WORDS = (48, 95)  # aimed at, whatever the page's length
_LIMITS = (40, 110)  # kept to where the page's sentences allow it
_COMFORTABLE = (8, 40)  # a sentence that says something and leaves room for others
_PIECE_WORDS = 30  # a sentence too long for any gist is cut into such pieces
_LENGTH_PENALTY = 0.6  # 0 favours long sentences, 1 dense ones
_ANSWER_SENTENCE = (12, 40)
_CENTRALITY_SHARE = 0.6  # beside 1 for the match with the question


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence or a piece of one, cleaned; `half` of the text it is from: 0 or 1."""

    text: str
    num_words: int
    half: int


@lru_cache(maxsize=256)  # the same pages are read for many questions; a book takes a megabyte
def sentences(text: str) -> tuple[Sentence, ...]:
    """The sentences of `text` in order, those that are nothing but tags left out."""
    return tuple(_cleaned(text, sentence_spans(text)))


def gist(page: str) -> str:
    """A page in about 15 % of its words: 40 to 110 on pages of 200 and more, from both halves.

    Each sentence taken is the one with the most weight of terms not yet said, for its length. A
    short page comes whole. Pieces of sentences are taken only where no whole ones will do. The
    mere beginning of a page of 200 words will not, unless the page only repeats itself.
    """
    found = sentences(page)
    every = range(len(found))
    if _words(found, every) < _WHOLE_WORDS:
        return _joined(found, every)
    took = _not_the_beginning(found, _covering(found, every))
    long = num_words(page) >= _LONG_PAGE
    if _words(found, took) < _LIMITS[0] or (long and _is_the_beginning(found, took)):
        found = tuple(_cleaned(page, _piece_spans(page)))
        took = _not_the_beginning(found, _covering(found, range(len(found))))
    return _joined(found, took)


def _not_the_beginning(found: Sequence[Sentence], took: list[int]) -> list[int]:
    """`took`, or other sentences where it is how the text begins and enough are left."""
    if not _is_the_beginning(found, took):
        return took
    text = _joined(found, range(len(found)))
    others = [i for i, sentence in enumerate(found) if not text.startswith(sentence.text)]
    instead = _covering(found, others)
    return instead if _words(found, instead) >= _LIMITS[0] else took


def _is_the_beginning(found: Sequence[Sentence], took: list[int]) -> bool:
    # By the texts: sentences that are apart may say the same.
    return _joined(found, range(len(found))).startswith(_joined(found, took))


def _covering(found: Sequence[Sentence], allowed: Collection[int]) -> list[int]:
    aim = _GIST_SHARE * _words(found, range(len(found)))
    aim = min(max(aim, _GIST_WORDS[0]), _GIST_WORDS[1])
    low, high = _COMFORTABLE
    comfortable = [i for i in allowed if low <= found[i].num_words <= high]
    # One that breaks off would run into the next.
    ended = [i for i in comfortable if _ENDED.search(found[i].text)]
    took = _cover(found, ended, [], 0.92 * aim, min(1.12 * aim, _LIMITS[1]))
    took = _cover(found, comfortable, took, 0.8 * aim, min(1.12 * aim, _LIMITS[1]))
    took = _cover(found, allowed, took, _LIMITS[0], _LIMITS[1])
    if _words(found, took) < _LIMITS[0]:  # what was taken may leave no room for a long one
        alone = [i for i in allowed if _LIMITS[0] <= found[i].num_words <= _LIMITS[1]]
        took = _cover(found, alone, [], _LIMITS[0], _LIMITS[1]) or took
    return took


def _cover(
    found: Sequence[Sentence], allowed: Collection[int], took: list[int], least: float, most: float
) -> list[int]:
    """`took` and more of `allowed` until there are `least` words, never more than `most`."""
    weight = weights([sentence.text for sentence in found])
    said = {term for i in took for term in terms(found[i].text)}
    while _words(found, took) < least:
        room = most - _words(found, took)
        fitting = [i for i in allowed if i not in took and found[i].num_words <= room]
        halves = {found[i].half for i in took}
        other = [i for i in fitting if len(halves) == 1 and found[i].half not in halves]
        if not fitting:
            break
        gains = {i: _gain(found[i], weight, said) for i in other or fitting}
        if not any(gains.values()):  # all has been said: begin anew, or the first ones would win
            said.clear()
            gains = {i: _gain(found[i], weight, said) for i in gains}
        best = max(gains, key=lambda i: (gains[i], -i))
        took = [*took, best]
        said.update(terms(found[best].text))
    return took


def _gain(sentence: Sentence, weight: dict[str, float], said: Collection[str]) -> float:
    new = sum(weight[t] for t in dict.fromkeys(terms(sentence.text)) if t not in said)
    return new / math.pow(sentence.num_words, _LENGTH_PENALTY)


def best_sentences(texts: Sequence[str], question: str, answer_words: int) -> str:
    """What `texts` say to `question` in about `answer_words` words; "" where they say nothing.

    Sentences by BM25 and centrality among all, those of a good length first. An answer too short
    for two is the best sentence, cut to its best clauses.
    """
    found = [sentence for text in texts for sentence in sentences(text)]
    order = _by_merit(found, question)
    if not order:
        return ""
    low, high = _ANSWER_SENTENCE
    low = min(low, max(1, answer_words // 2))
    order.sort(key=lambda i: not low <= found[i].num_words <= high)
    if answer_words < 2 * _ANSWER_SENTENCE[0] or found[order[0]].num_words > 1.1 * answer_words:
        return best_clauses(found[order[0]].text, question, answer_words)
    return _joined(found, _fill(found, order, answer_words))


def _by_merit(found: Sequence[Sentence], question: str) -> list[int]:
    texts = [sentence.text for sentence in found]
    match = relevance(texts, question)
    merit = match / (match.max(initial=0.0) or 1.0) + _CENTRALITY_SHARE * centrality(texts)
    return sorted(range(len(found)), key=lambda index: -merit[index])


def _fill(found: Sequence[Sentence], order: Sequence[int], answer_words: int) -> list[int]:
    took: list[int] = []
    said: set[str] = set()
    total = 0
    for i in order:
        if total >= 0.93 * answer_words:
            break
        if total + found[i].num_words <= 1.1 * answer_words and found[i].text not in said:
            took.append(i)
            said.add(found[i].text)
            total += found[i].num_words
    return took


def best_clauses(sentence: str, question: str, most_words: int) -> str:
    """`sentence`, or at most `most_words` of it from the clause that answers `question` best on."""
    if num_words(sentence) <= most_words:
        return sentence
    starts = [0, *(m.end() for m in _CLAUSE_END.finditer(sentence) if m.end() < len(sentence))]
    ends = [*starts[1:], len(sentence)]
    match = relevance([sentence[a:b] for a, b in zip(starts, ends, strict=True)], question)
    start = starts[int(match.argmax())]
    words = [start + end for _, end in word_spans(sentence[start:])[:most_words]]
    # Ending with a clause is worth half of the words, no more.
    whole = [end for end in ends if words[(len(words) - 1) // 2] <= end <= words[-1] + 1]
    return sentence[start : whole[-1] if whole else words[-1]].strip(" \t,;:，；：、-–—")


def _cleaned(text: str, spans: Sequence[tuple[int, int]]) -> list[Sentence]:
    clean = [" ".join(_TAG.sub(" ", text[start:end]).split()) for start, end in spans]
    halves = [int(start + end > len(text)) for start, end in spans]
    rows = zip(clean, halves, strict=True)
    return [Sentence(said, num_words(said), half) for said, half in rows if said]


def _piece_spans(text: str) -> list[tuple[int, int]]:
    """Spans of `_PIECE_WORDS` words at most: whole sentences, or runs of a longer one."""
    spans: list[tuple[int, int]] = []
    for start, end in sentence_spans(text):
        words = word_spans(text[start:end])
        for first in range(0, len(words), _PIECE_WORDS):
            run = words[first : first + _PIECE_WORDS]
            spans.append((start + run[0][0], start + run[-1][1]))
    return spans


def _words(found: Sequence[Sentence], took: Collection[int]) -> int:
    return sum(found[i].num_words for i in took)


def _joined(found: Sequence[Sentence], took: Collection[int]) -> str:
    return " ".join(found[i].text for i in sorted(took))
