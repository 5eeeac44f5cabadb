"""METEOR without WordNet (Banerjee and Lavie 2005, with their weights): words match as they are,
then by their Porter stems; synonyms do not match, so it is at most the authors' value.
"""

import re

from nltk.stem.porter import PorterStemmer

from gistmill.plugin import metric

_STEM = PorterStemmer().stem


@metric("meteor", version=1)
def meteor(answer: str, reference: str) -> float:
    """METEOR without WordNet: F of unigrams, recall 9 times precision, less the fragmentation."""
    said, right = _words(answer), _words(reference)
    places = aligned(said, right)
    if not places:
        return 0.0
    precision, recall = len(places) / len(said), len(places) / len(right)
    mean = 10 * precision * recall / (recall + 9 * precision)
    runs = sum(places.get(place - 1, -2) + 1 != other for place, other in places.items())
    return 100 * mean * (1 - 0.5 * (runs / len(places)) ** 3)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def aligned(said: list[str], right: list[str]) -> dict[int, int]:
    """The place in the reference of each word of the answer that matches one, by its own place.

    Of several equal words the one after the last match counts, else the first before an equal word,
    else the first; the authors look for the fewest crossings, so that rarely theirs has fewer runs.
    """
    places: dict[int, int] = {}
    for mine, theirs in ((said, right), ([*map(_STEM, said)], [*map(_STEM, right)])):
        free: dict[str, list[int]] = {}
        for other in sorted({*range(len(right))} - {*places.values()}):
            free.setdefault(theirs[other], []).append(other)
        for place in sorted({*range(len(said))} - {*places}):
            others = free.get(mine[place], [])
            following = places.get(place - 1, -2) + 1
            if others:
                ahead = [theirs[n + 1 : n + 2] == mine[place + 1 : place + 2] for n in others]
                best = others[ahead.index(True)] if True in ahead else others[0]
                places[place] = following if following in others else best
                others.remove(places[place])
    return places
