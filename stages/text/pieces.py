"""Short pieces of long texts: relevant or central sentences, and runs of words from many places.

What replies of several lines are made of without a model. A piece has no line break.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate, islice, pairwise

from stages.text.excerpts import Sentence, best_clauses, by_merit, sentences
from stages.text.ranking import centrality
from stages.text.words import word_spans

_CHARS_A_WORD = 64  # read for each; hardly any is longer


def relevant_sentences(
    texts: Sequence[str], question: str, num_sentences: int, words: tuple[int, int]
) -> list[str]:
    """The sentences of `texts` that match `question` best, best first, none twice: first those of
    at least and at most so many `words`; of a longer one the best clauses."""
    found = _sentences(texts)
    order = by_merit(found, question)
    order.sort(key=lambda i: not words[0] <= found[i].num_words <= words[1])
    best = islice(dict.fromkeys(found[i].text for i in order), num_sentences)
    return [best_clauses(text, question, words[1]) for text in best]


def central_sentences(
    texts: Sequence[str], num_sentences: int, words: tuple[int, int]
) -> list[str]:
    """The most central sentence of each of `num_sentences` equal parts of `texts`, in their order,
    none twice; lengths as in `relevant_sentences`."""
    found = _sentences(texts)
    central = centrality([sentence.text for sentence in found])
    ends = [len(found) * part // num_sentences for part in range(num_sentences + 1)]
    best: dict[str, None] = {}
    for start, end in pairwise(ends):
        part = range(start, end)
        fitting = [i for i in part if words[0] <= found[i].num_words <= words[1]] or part
        if fitting:
            best[found[max(fitting, key=lambda i: central[i])].text] = None
    return [best_clauses(text, "", words[1]) for text in best]


def spread_pieces(texts: Sequence[str], num_pieces: int, num_words: int) -> list[str]:
    """At most `num_pieces` pieces of about `num_words` words, none twice, from places that are
    spread evenly over `texts`. Reads no more of a book than these places."""
    ends = list(accumulate(map(len, texts)))
    found: dict[str, None] = {}
    for place in range(num_pieces if ends and ends[-1] else 0):
        position = ends[-1] * place // num_pieces
        index = bisect_right(ends, position)
        start = position - (ends[index] - len(texts[index]))
        found[_words_at(texts[index], start, num_words)] = None
    return list(found)


def _words_at(text: str, position: int, num_words: int) -> str:
    """So many words, the first of them that at `position`."""
    start = max(0, position - _CHARS_A_WORD)
    near = text[start : position + _CHARS_A_WORD * num_words]
    spans = [span for span in word_spans(near) if start + span[1] > position][:num_words]
    return " ".join(near[spans[0][0] : spans[-1][1]].split()) if spans else ""


def _sentences(texts: Sequence[str]) -> list[Sentence]:
    return [sentence for text in texts for sentence in sentences(text)]
