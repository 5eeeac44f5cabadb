"""Compaction by a run: before it, periodically while it executes, and after it."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from upath import UPath

from pipeline.core.errors import DamagedError
from pipeline.files.storage_retries import refusal_reason, storage_errors
from pipeline.store.upkeep.compaction import WORTH_IT, compact

_SECONDS_BETWEEN = 300.0
_MANY = 2_000  # loose shards of a table, whose footers take a reading command seconds


def compact_if_worth_it(
    warehouse: UPath, warn: Callable[[str], None], least: int = WORTH_IT
) -> None:
    """Compact the warehouse if that is worth it; the rows are safe if it fails. A damaged file that
    the run needs is reported when the run reads it."""
    try:
        compact(warehouse, least)
    except DamagedError as error:
        warn(f"not compacted: {error}")
    except storage_errors() as error:
        warn(f"not compacted ({refusal_reason(error)}); gistmill gc does it later")


@contextmanager
def compact_periodically(
    warehouse: UPath, seconds: float = _SECONDS_BETWEEN, least: int = _MANY
) -> Iterator[None]:
    """Compact every `seconds`, in a thread, the shards that the `with` block commits: tables of
    `least` loose shards or more. A failure is not reported here, but by the compaction after the
    run."""
    is_over = threading.Event()

    def compact_now_and_then() -> None:
        while not is_over.wait(seconds):
            compact_if_worth_it(warehouse, lambda line: None, least)

    thread = threading.Thread(target=compact_now_and_then, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
