"""The layout of a warehouse's files, which <warehouse>/gistmill.json states: {"layout": N}.

Layout 1: warehouses without that file; their units have one attempt each. Layout 2: a unit may have
several attempts, and shards may be compacted. Raise LAYOUT when an earlier gistmill would misread
what a run writes.
"""

import json

from upath import UPath

from pipeline.core.errors import DamagedError, UsageError
from pipeline.files.storage import commit, read, write
from pipeline.store.shards.damaged_files import RERUN

LAYOUT = 2
FILE = "gistmill.json"
# readers: of version 0.2
FOLDERS = ("tables", "compacted", "steps", "runs", "shared", "journal", "removed", "readers")


def check_layout(warehouse: UPath) -> int:
    """The warehouse's layout. Raises UsageError if a later gistmill made it, DamagedError if its
    layout is not known."""
    layout = _layout(warehouse / FILE)
    if layout > LAYOUT:
        raise UsageError(
            f"{warehouse}: made by a later gistmill (layout {layout}, this one knows {LAYOUT}); "
            "update, or name another warehouse"
        )
    return layout


def _layout(file: UPath) -> int:
    try:
        layout = json.loads(read(file))["layout"]
    except (FileNotFoundError, NotADirectoryError):
        return 1
    except (ValueError, TypeError, KeyError, IsADirectoryError):
        layout = None
    if isinstance(layout, int):
        return layout
    raise DamagedError(file, f"does not say which layout the files have; {RERUN}")


def raise_layout(warehouse: UPath) -> None:
    """Write that the warehouse has today's layout. Raises as `check_layout` does."""
    if check_layout(warehouse) < LAYOUT:
        file, content = warehouse / FILE, json.dumps({"layout": LAYOUT}).encode()
        if not commit(file, content):  # of an earlier layout
            write(file, content)
