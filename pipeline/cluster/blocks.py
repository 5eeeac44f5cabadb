"""The blocks of documents that Ray Data deals to workers. It deals by count, to the worker that has
the fewest: blocks of equal work are dealt by work."""

from collections.abc import Sequence

from pipeline.work.units import DocumentWork

_WORDS = 20_000  # of a block: seconds of an engine, and Ray's milliseconds are for all of them
_PER_WORKER = 32  # or more, so that workers end at about the same time


WeightedDocument = tuple[DocumentWork, float]
"""A document, and the words of the work on it: those that its pending units read."""


def blocks(documents: Sequence[WeightedDocument], num_workers: int) -> list[list[DocumentWork]]:
    """The documents in their order, the longest first: a long one by itself, short ones together,
    as many as come to a small share of all work."""
    most = min(_WORDS, sum(words for _, words in documents) / (num_workers * _PER_WORKER))
    found: list[list[DocumentWork]] = []
    room = 0.0
    for document, words in documents:
        if not found or words > room:
            found.append([])
            room = most
        found[-1].append(document)
        room -= words
    return found
