"""Compaction by a run: before it, now and then while it works, and after it."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from upath import UPath

from pipeline.errors import DamagedError
from pipeline.retries import given_up, reason
from pipeline.store.compaction import WORTH_IT, compact

_SECONDS_BETWEEN = 300.0
_MANY = 2_000  # loose shards of a table: whoever looks at the run reads their footers for seconds


def compacted(warehouse: UPath, warn: Callable[[str], None], least: int = WORTH_IT) -> None:
    """Compact the warehouse where that is worth it; the rows are safe where it cannot be done. Of
    a damaged file that the run needs, its own reading says so."""
    try:
        compact(warehouse, least)
    except DamagedError as error:
        warn(f"not compacted: {error}")
    except given_up() as error:
        warn(f"not compacted ({reason(error)}); gistmill gc does it later")


@contextmanager
def compacting(
    warehouse: UPath, seconds: float = _SECONDS_BETWEEN, least: int = _MANY
) -> Iterator[None]:
    """Compact every `seconds`, in a thread, what the `with` block commits: tables of `least`
    loose shards or more. Why that cannot be done is said by the compaction after it."""
    is_over = threading.Event()

    def compact_now_and_then() -> None:
        while not is_over.wait(seconds):
            compacted(warehouse, lambda line: None, least)

    thread = threading.Thread(target=compact_now_and_then, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
