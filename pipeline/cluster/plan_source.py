"""The source of a Ray Data execution: one task that reads the documents of the plan as workers take
them, so that neither Ray nor the driver holds the plan."""

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from ray.data import DataContext
from ray.data.block import BlockMetadata
from ray.data.datasource import Datasource, ReadTask

from pipeline.cluster.blocks import blocks
from pipeline.work.executions import DocumentWork

# Blocks that the task is ahead of the driver. With Ray's 2 it hands over 60 a second, with 32 some
# 190, as many as blocks that all lie in Ray before.
_AHEAD = 32


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
    """Let Ray Data pass on each row of the source as a block of its own."""
    context.target_max_block_size = 1  # byte: no two rows are put together
    context._max_num_blocks_in_streaming_gen_buffer = _AHEAD
