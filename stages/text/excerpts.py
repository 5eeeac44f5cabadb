"""Extractive summaries without a model: a page's gist, an answer to a question, and short pieces of
long texts. A piece has no line break.

Selected sentences keep their order in the text; tags like `{vocalsound}` and line breaks are
removed. Words are counted by `stages.text.words.num_words`. The constants were tuned on QMSum val,
for evidence recall and gist length, never on answers.
"""

import math
import re
from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, islice, pairwise

from stages.text.ranking import centrality, relevance, terms, weights
from stages.text.words import num_words, sentence_spans, word_spans

_TAG = re.compile(r"\{[^{}]*\}")
_CLAUSE_END = re.compile(r"[,;:，；：、]\s*|\s+[-–—]+\s+")
_ENDED = re.compile(r"[.!?…。！？][\"'”’」』）)\]]*$")
_WHOLE_WORDS = 60  # a shorter page is its own gist
_LONG_PAGE = 200  # words; a shorter page's gist may be its first sentences
_GIST_SHARE = 0.155  # of the page's words: 67 of 430
_GIST_WORDS = (48, 95)  # the target length is clamped to this
_LIMITS = (40, 110)  # minimum and maximum length, where the sentences allow them
_COMFORTABLE = (8, 40)  # words: informative, yet short enough to leave room for others
_PIECE_WORDS = 30  # sentences too long for any gist are cut into pieces of this length
_LENGTH_PENALTY = 0.6  # 0 favors long sentences, 1 sentences of high weight per word
_ANSWER_SENTENCE = (12, 40)  # words
_CENTRALITY_SHARE = 0.6  # weight of centrality; the match with the question weighs 1
_CHARS_A_WORD = 64  # hardly any word is longer


@dataclass(frozen=True, slots=True)
class Sentence:
    """A cleaned sentence or a piece of one; `half`: the half of the text it is in, 0 or 1."""

    text: str
    num_words: int
    half: int


@lru_cache(maxsize=256)  # the same pages are read for many questions; a book takes a megabyte
def sentences(text: str) -> tuple[Sentence, ...]:
    """The sentences of `text` in order, without those that consist only of tags."""
    return _cleaned(text, sentence_spans(text))


def _cleaned(text: str, spans: Sequence[tuple[int, int]]) -> tuple[Sentence, ...]:
    clean = [" ".join(_TAG.sub(" ", text[start:end]).split()) for start, end in spans]
    halves = [int(start + end > len(text)) for start, end in spans]
    rows = zip(clean, halves, strict=True)
    return tuple(Sentence(line, num_words(line), half) for line, half in rows if line)


def gist(page: str) -> str:
    """Sentences with about 15% of a page's words, 40 to 110 words on a long page; a page under 60
    words is returned whole.

    Sentences are chosen one after another: each time the one with the highest weight of terms not
    covered so far, relative to its length. Where whole sentences do not fit, pieces of them are
    chosen. The gist of a page of 200 words or more covers both halves, unless the page only repeats
    itself."""
    parts = sentences(page)
    if _words(parts, range(len(parts))) < _WHOLE_WORDS:
        return _joined(parts, range(len(parts)))
    chosen, is_beginning = _chosen(parts)
    is_long = num_words(page) >= _LONG_PAGE
    if _words(parts, chosen) < _LIMITS[0] or (is_long and is_beginning):
        spans = []  # whole sentences of at most `_PIECE_WORDS` words, and pieces of longer ones
        for start, end in sentence_spans(page):
            words = word_spans(page[start:end])
            for first in range(0, len(words), _PIECE_WORDS):
                piece = words[first : first + _PIECE_WORDS]
                spans.append((start + piece[0][0], start + piece[-1][1]))
        parts = _cleaned(page, spans)
        chosen, _ = _chosen(parts)
    return _joined(parts, chosen)


def _chosen(parts: Sequence[Sentence]) -> tuple[list[int], bool]:
    """Indexes of the gist's sentences, and whether these are just the beginning of the text, which
    they are only if there are too few others."""
    text = _joined(parts, range(len(parts)))
    chosen = _covering(parts, range(len(parts)))
    # Compares texts, not positions: a sentence may occur twice.
    if not text.startswith(_joined(parts, chosen)):
        return chosen, False
    elsewhere = [i for i, sentence in enumerate(parts) if not text.startswith(sentence.text)]
    instead = _covering(parts, elsewhere)
    if _words(parts, instead) < _LIMITS[0]:
        return chosen, True
    return instead, text.startswith(_joined(parts, instead))


def _covering(parts: Sequence[Sentence], allowed: Collection[int]) -> list[int]:
    """Indexes of the gist's sentences: complete ones first, then any length within limits."""
    target = _GIST_SHARE * _words(parts, range(len(parts)))
    target = min(max(target, _GIST_WORDS[0]), _GIST_WORDS[1])
    low, high = _COMFORTABLE
    comfortable = [i for i in allowed if low <= parts[i].num_words <= high]
    # A sentence without final punctuation would run into the next one.
    complete = [i for i in comfortable if _ENDED.search(parts[i].text)]
    chosen = _cover(parts, complete, [], 0.92 * target, min(1.12 * target, _LIMITS[1]))
    chosen = _cover(parts, comfortable, chosen, 0.8 * target, min(1.12 * target, _LIMITS[1]))
    chosen = _cover(parts, allowed, chosen, *_LIMITS)
    if _words(parts, chosen) < _LIMITS[0]:  # the rest may be too long to fit beside these
        alone = [i for i in allowed if _LIMITS[0] <= parts[i].num_words <= _LIMITS[1]]
        chosen = _cover(parts, alone, [], *_LIMITS) or chosen
    return chosen


def _cover(
    parts: Sequence[Sentence],
    allowed: Collection[int],
    chosen: list[int],
    least: float,
    most: float,
) -> list[int]:
    """`chosen` and more of `allowed` until there are `least` words, never more than `most`."""
    weight = weights([sentence.text for sentence in parts])
    covered = {term for i in chosen for term in terms(parts[i].text)}

    def gain(index: int) -> float:
        new = (t for t in dict.fromkeys(terms(parts[index].text)) if t not in covered)
        return sum(weight[t] for t in new) / math.pow(parts[index].num_words, _LENGTH_PENALTY)

    while _words(parts, chosen) < least:
        room = most - _words(parts, chosen)
        fitting = [i for i in allowed if i not in chosen and parts[i].num_words <= room]
        halves = {parts[i].half for i in chosen}
        other = [i for i in fitting if len(halves) == 1 and parts[i].half not in halves]
        if not fitting:
            break
        gains = {i: gain(i) for i in other or fitting}
        if not any(gains.values()):  # every term is covered: start over, or the first would win
            covered.clear()
            gains = {i: gain(i) for i in gains}
        best = max(gains, key=lambda i: (gains[i], -i))
        chosen = [*chosen, best]
        covered.update(terms(parts[best].text))
    return chosen


def best_sentences(texts: Sequence[str], question: str, answer_words: int) -> str:
    """The sentences of `texts` that answer `question` best, about `answer_words` words in all, by
    BM25 plus centrality, those of 12 to 40 words first; where `answer_words` is too few for two,
    the best one's best clauses. "" where `texts` have no sentence."""
    parts = [sentence for text in texts for sentence in sentences(text)]
    low, high = _ANSWER_SENTENCE
    order = _by_merit(parts, question, (min(low, max(1, answer_words // 2)), high))
    if not order:
        return ""
    if answer_words < 2 * low or parts[order[0]].num_words > 1.1 * answer_words:
        return best_clauses(parts[order[0]].text, question, answer_words)
    chosen: dict[str, int] = {}  # no text twice
    total = 0
    for i in order:
        if total >= 0.93 * answer_words:
            break
        if total + parts[i].num_words <= 1.1 * answer_words and parts[i].text not in chosen:
            chosen[parts[i].text] = i
            total += parts[i].num_words
    return _joined(parts, chosen.values())


def _by_merit(parts: Sequence[Sentence], question: str, words: tuple[int, int]) -> list[int]:
    """Indexes of the sentences by BM25 for `question` plus centrality, those with a length between
    the two of `words` first."""
    texts = [sentence.text for sentence in parts]
    match = relevance(texts, question)
    merit = match / (match.max(initial=0.0) or 1.0) + _CENTRALITY_SHARE * centrality(texts)
    low, high = words
    return sorted(
        range(len(parts)), key=lambda i: (not low <= parts[i].num_words <= high, -merit[i])
    )


def best_clauses(sentence: str, question: str, most_words: int) -> str:
    """At most `most_words` words of `sentence`, from the clause that matches `question` best."""
    if num_words(sentence) <= most_words:
        return sentence
    starts = [0, *(m.end() for m in _CLAUSE_END.finditer(sentence) if m.end() < len(sentence))]
    ends = [*starts[1:], len(sentence)]
    match = relevance([sentence[a:b] for a, b in zip(starts, ends, strict=True)], question)
    start = starts[int(match.argmax())]
    words = [start + end for _, end in word_spans(sentence[start:])[:most_words]]
    # End at a clause, if that keeps at least half of the words.
    whole = [end for end in ends if words[(len(words) - 1) // 2] <= end <= words[-1] + 1]
    return sentence[start : whole[-1] if whole else words[-1]].strip(" \t,;:，；：、-–—")


def _words(parts: Sequence[Sentence], chosen: Collection[int]) -> int:
    return sum(parts[i].num_words for i in chosen)


def _joined(parts: Sequence[Sentence], chosen: Collection[int]) -> str:
    return " ".join(parts[i].text for i in sorted(chosen))


def relevant_sentences(
    texts: Sequence[str], question: str, num_sentences: int, words: tuple[int, int]
) -> list[str]:
    """The sentences of `texts` that match `question` best, best first, none twice; first those with
    a length between the two of `words`. A longer one is cut to its best clauses."""
    parts = [sentence for text in texts for sentence in sentences(text)]
    in_order = dict.fromkeys(parts[i].text for i in _by_merit(parts, question, words))
    return [best_clauses(text, question, words[1]) for text in islice(in_order, num_sentences)]


def central_sentences(
    texts: Sequence[str], num_sentences: int, words: tuple[int, int]
) -> list[str]:
    """The most central sentence of each of `num_sentences` equal parts of `texts`, in their
    order, none twice; lengths as in `relevant_sentences`."""
    parts = [sentence for text in texts for sentence in sentences(text)]
    central = centrality([sentence.text for sentence in parts])
    ends = [len(parts) * share // num_sentences for share in range(num_sentences + 1)]
    best: dict[str, None] = {}
    for start, end in pairwise(ends):
        share = range(start, end)
        fitting = [i for i in share if words[0] <= parts[i].num_words <= words[1]] or share
        if fitting:
            best[parts[max(fitting, key=lambda i: central[i])].text] = None
    return [best_clauses(text, "", words[1]) for text in best]


def spread_pieces(texts: Sequence[str], num_pieces: int, num_words: int) -> list[str]:
    """At most `num_pieces` pieces of about `num_words` words, none twice, from places spread evenly
    over `texts`, of which only these places are read."""
    ends = list(accumulate(map(len, texts)))
    pieces: dict[str, None] = {}
    for number in range(num_pieces if ends and ends[-1] else 0):
        position = ends[-1] * number // num_pieces
        index = bisect_right(ends, position)
        position -= ends[index] - len(texts[index])
        start = max(0, position - _CHARS_A_WORD)
        near = texts[index][start : position + _CHARS_A_WORD * num_words]
        spans = [span for span in word_spans(near) if start + span[1] > position][:num_words]
        pieces[" ".join(near[spans[0][0] : spans[-1][1]].split()) if spans else ""] = None
    return list(pieces)
