"""Which layout of its files a warehouse has: <warehouse>/gistmill.json says {"layout": N}.

Layout 1: warehouses without that file; their units have one attempt each. Layout 2: a unit may have
several attempts. Raise LAYOUT when an earlier gistmill would misread what a run writes.
"""

import json

from upath import UPath

from pipeline.errors import DamagedError, UsageError
from pipeline.place import commit, write

LAYOUT = 2


def check_layout(warehouse: UPath) -> int:
    """The warehouse's layout. Raises UsageError where a later gistmill made it, DamagedError where
    its file cannot be read."""
    file = warehouse / "gistmill.json"
    try:
        layout = json.loads(file.read_bytes())["layout"]
        is_later = layout > LAYOUT
    except (FileNotFoundError, NotADirectoryError):
        return 1
    except (ValueError, TypeError, KeyError, IsADirectoryError):
        fix = "delete it and run the same command again"
        raise DamagedError(file, f"does not say which layout the files have; {fix}") from None
    if is_later:
        raise UsageError(
            f"{warehouse}: made by a later gistmill (layout {layout}, this one knows {LAYOUT}); "
            "update, or name another warehouse"
        )
    return int(layout)


def raise_layout(warehouse: UPath) -> None:
    """Write that files of today's layout may follow. Raises as `check_layout` does."""
    if check_layout(warehouse) < LAYOUT:
        file, content = warehouse / "gistmill.json", json.dumps({"layout": LAYOUT}).encode()
        if not commit(file, content):
            write(file, content)
