"""Blocks of documents: a long one by itself, short ones together, all in their order."""

import pytest

from pipeline.cluster.ray_data import blocks, words_per_block
from pipeline.work.units import DocumentWork, work_on


def dealt(words: list[float], num_workers: int) -> list[list[float]]:
    """The words of the documents in each block."""
    documents = [DocumentWork(str(number), (), own, 0) for number, own in enumerate(words)]
    found = list(blocks(documents, words_per_block(work_on(documents), num_workers)))
    assert [document for block in found for document in block] == documents, "in their order"
    return [[document.words for document in block] for block in found]


def test_short_documents_share_a_block_of_20_000_words() -> None:
    """All work is 1,280,000 words: a 32nd of one worker's is 40,000, and the limit is less."""
    words = [500_000.0, 300_000.0, *[20_000.0] * 16, *[8_000.0] * 10, *[1_000.0] * 80]
    assert sum(words) == 1_280_000
    assert dealt(words, 1) == [
        [500_000], [300_000], *[[20_000]] * 16, *[[8_000] * 2] * 4, [8_000] * 2 + [1_000] * 4,
        *[[1_000] * 20] * 3, [1_000] * 16,
    ]  # fmt: skip


def test_fewer_words_are_dealt_in_32_parts_per_worker() -> None:
    """6,400 words among two workers: 100 to a block."""
    words = [1_500.0, *[100.0] * 20, *[50.0] * 40, *[9.0] * 100]
    assert sum(words) == 6_400
    assert dealt(words, 2) == [[1_500], *[[100]] * 20, *[[50, 50]] * 20, *[[9] * 11] * 9, [9]]


@pytest.mark.parametrize(("num", "num_workers"), [(1, 1), (1, 64), (25, 1), (200, 64)])
def test_few_documents_are_alone(num: int, num_workers: int) -> None:
    assert dealt([700.0] * num, num_workers) == [[700.0]] * num
