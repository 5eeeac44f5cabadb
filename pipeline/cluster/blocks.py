"""The blocks of documents that Ray Data deals to workers. One task reads them from the plan as
workers take them, so neither Ray nor the driver holds the plan.

Ray deals each block to the worker that has the fewest blocks; with blocks of equal work, the work
is spread evenly.
"""

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from ray.data import DataContext
from ray.data.block import BlockMetadata
from ray.data.datasource import Datasource, ReadTask

from pipeline.work.executions import DocumentWork, Work

_WORDS = 20_000  # of a block: seconds of an engine, beside which Ray's milliseconds do not count
_PER_WORKER = 32  # or more, so that workers end at about the same time
# Blocks by which the task is ahead of the driver. With Ray's 2 it hands over 60 a second, with 32
# some 190, as many as if all blocks were in Ray before.
_AHEAD = 32


def words_per_block(work: Work, num_workers: int) -> float:
    """The most words of a block with several documents."""
    return min(_WORDS, work.words / (num_workers * _PER_WORKER))


def blocks(documents: Iterable[DocumentWork], most_words: float) -> Iterator[list[DocumentWork]]:
    """Group the documents, which come longest first: a long one by itself, short ones together, up
    to `most_words` words."""
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


@dataclass
class PlanSource(Datasource):
    """Blocks of up to `words` words of the documents, each block a row."""

    documents: Iterable[DocumentWork]
    words: float

    def estimate_inmemory_data_size(self) -> int | None:
        return None

    def get_read_tasks(self, parallelism: int, *args: Any, **options: Any) -> list[ReadTask]:
        unknown = BlockMetadata(num_rows=None, size_bytes=None, exec_stats=None, input_files=None)
        return [ReadTask(self._rows, unknown)]

    def _rows(self) -> Iterator[Any]:
        for block in blocks(self.documents, self.words):
            yield pa.table({"documents": [pickle.dumps(block)]})


def read_one_by_one(context: DataContext) -> None:
    """Make Ray Data pass on each row of the source as a block of its own."""
    context.target_max_block_size = 1  # byte: never puts two rows together
    context._max_num_blocks_in_streaming_gen_buffer = _AHEAD
