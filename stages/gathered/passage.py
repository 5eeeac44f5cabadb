"""The passage of a page that an answer rests on: found by the rare words that it shares with the
answer and the question, without a model."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stages.text.ranking import terms
from stages.text.words import num_words, sentence_spans

_LEAST, _MOST = 20, 60  # words of a passage, where sentences allow them


@dataclass(frozen=True, slots=True)
class Quote:
    """Consecutive sentences of a page in one line, with headings and rows of tables on lines of
    their own; `score`: the summed weight of the terms that they share with answer and question, 0
    if there are none."""

    text: str
    score: float


def rarity(texts: Sequence[str]) -> dict[str, float]:
    """The inverse document frequency of each term: ln((1 + texts) / texts with it)."""
    found = Counter(term for text in texts for term in {*terms(text)})
    return {term: math.log((1 + len(texts)) / n) for term, n in found.items()}


def passage(page: str, question: str, answer: str, weight: Mapping[str, float]) -> Quote:
    """The best sentence of `page` and those beside it that share weight, too, up to 60 words; any,
    up to 20. `weight`: of each term, by `rarity`."""
    sentences = [page[start:end].strip() for start, end in sentence_spans(page)]
    sentences = [_on_lines([" ".join(line.split()) for line in text.splitlines()])
                 for text in sentences if text]  # fmt: skip
    wanted = {term: weight.get(term, 0.0) for term in terms(f"{question}\n{answer}")}
    own = [{*terms(text)} & wanted.keys() for text in sentences]
    scores = [sum(map(wanted.__getitem__, found)) for found in own]
    if not sentences:
        return Quote("", 0.0)
    first = last = max(range(len(scores)), key=lambda index: scores[index])
    size = num_words(sentences[first])
    while beside := [n for n in (first - 1, last + 1) if 0 <= n < len(scores)]:
        best = max(beside, key=lambda index: scores[index])
        size += num_words(sentences[best])
        if size > _MOST or (not scores[best] and size > _LEAST):
            break
        first, last = min(first, best), max(last, best)
    shared = set[str]().union(*own[first : last + 1])
    return Quote(_on_lines(sentences[first : last + 1]), sum(map(wanted.__getitem__, shared)))


def _on_lines(parts: Sequence[str]) -> str:
    """The parts in one line, or on a line each if one is a heading or a row of a table."""
    plain = [part.strip() for part in parts if part.strip()]
    return ("\n" if any(part.startswith(("#", "|")) for part in plain) else " ").join(plain)
