"""The blocks of documents that Ray Data deals to workers. It deals by count, to the worker that has
the fewest: blocks of equal work are dealt by work."""

from collections.abc import Iterable, Iterator

from pipeline.work.executions import DocumentWork, Work

_WORDS = 20_000  # of a block: seconds of an engine, and Ray's milliseconds are for all of them
_PER_WORKER = 32  # or more, so that workers end at about the same time


def words_per_block(work: Work, num_workers: int) -> float:
    """The words of a block with several documents."""
    return min(_WORDS, work.words / (num_workers * _PER_WORKER))


def blocks(documents: Iterable[DocumentWork], most_words: float) -> Iterator[list[DocumentWork]]:
    """The documents in their order, the longest first: a long one by itself, short ones together,
    as many as come to `most_words`."""
    block: list[DocumentWork] = []
    room = most_words
    for document in documents:
        if block and document.words > room:
            yield block
            block, room = [], most_words
        block.append(document)
        room -= document.words
    if block:
        yield block
