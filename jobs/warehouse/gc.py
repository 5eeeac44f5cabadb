"""`gistmill gc`: compact loose shards, then delete files that were replaced before the
retention."""

import re

from jobs.config.options import ReadOptions
from jobs.output.print_tables import print_json, print_line
from pipeline.core.errors import UsageError
from pipeline.files.place import exists
from pipeline.store.upkeep.compaction import Compaction, compact
from pipeline.store.upkeep.garbage import RETENTION, Freed, collect

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def show_gc(options: ReadOptions, as_json: bool) -> None:
    """Compact and collect, and print the counts. Raises UsageError if there is no warehouse, or
    another process compacts or collects it now."""
    seconds = retention(options.older_than)
    warehouse = options.warehouse
    if not any(exists(warehouse / folder) for folder in ("tables", "compacted")):
        raise UsageError(f"warehouse={warehouse}: no warehouse there; set warehouse=")
    compacted = compact(warehouse, least=2)
    freed = collect(warehouse, seconds) if compacted else None
    if compacted is None or freed is None:
        raise UsageError(f"warehouse={warehouse}: another process compacts it now; try again later")
    _show(compacted, freed, as_json)


def retention(text: str | None) -> float:
    """The seconds in `24h`, `30m`, `0` ...; by default a day. Raises UsageError for other texts."""
    if text is None:
        return RETENTION
    found = re.fullmatch(r"(\d{1,6})([smhd])|0()", text)
    if not found:
        raise UsageError(f"older_than={text}: not a duration; write 24h, 90m or 2d")
    return float(int(found[1]) * _SECONDS[found[2]]) if found[1] else 0.0


def _show(compacted: Compaction, freed: Freed, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "compacted": compacted.shards,
                "into": compacted.files,
                "deleted": freed.files,
                "bytes": freed.bytes,
            }
        )
        return
    print_line(f"compacted {compacted.shards:,} shards into {compacted.files:,} files")
    print_line(f"deleted {freed.files:,} files, {freed.bytes:,} bytes")
    if freed.is_waiting:
        print_line("what removed runs had planned stays, as a run is at work")
