"""`gistmill gc`: compact loose shards, then delete files that were replaced before the
retention."""

import re

from jobs.config.options import ReadOptions
from jobs.output.print_tables import print_found
from pipeline.core.errors import UsageError
from pipeline.files.place import exists
from pipeline.store.upkeep.compaction import compact
from pipeline.store.upkeep.garbage import RETENTION, collect

_LINES = """\
compacted {compacted:,} shards into {into:,} files
deleted {deleted:,} files, {bytes:,} bytes"""
_WAITING = "\nwhat removed runs had planned stays, as a run is at work"
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def show_gc(options: ReadOptions, as_json: bool) -> None:
    """Compact and collect, and print the counts. Raises UsageError if there is no warehouse, or
    another process compacts or collects it now."""
    seconds, warehouse = retention(options.older_than), options.warehouse
    if not any(exists(warehouse / folder) for folder in ("tables", "compacted")):
        raise UsageError(f"warehouse={warehouse}: no warehouse there; set warehouse=")
    compacted = compact(warehouse, least=2)
    freed = collect(warehouse, seconds) if compacted else None
    if compacted is None or freed is None:
        raise UsageError(f"warehouse={warehouse}: another process compacts it now; try again later")
    found = {
        "compacted": compacted.shards,
        "into": compacted.files,
        "deleted": freed.files,
        "bytes": freed.bytes,
    }
    lines = _LINES.format(**found) + (_WAITING if freed.is_waiting else "")
    print_found(found, lambda _: [lines], as_json)


def retention(text: str | None) -> float:
    """The seconds in `24h`, `30m`, `0` ...; by default a day. Raises UsageError for other texts."""
    if text is None:
        return RETENTION
    found = re.fullmatch(r"(\d{1,6})([smhd])|0()", text)
    if not found:
        raise UsageError(f"older_than={text}: not a duration; write 24h, 90m or 2d")
    return float(int(found[1]) * _SECONDS[found[2]]) if found[1] else 0.0
