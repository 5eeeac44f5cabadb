"""The layout of a warehouse's files, which <warehouse>/gistmill.json states: {"layout": N}.

Raise LAYOUT when an earlier gistmill would misread what a run writes. Version 0.2 wrote layout 2. A
warehouse without the file is new or older, and has layout 1.
"""

import json

from pydantic import BaseModel, StrictInt
from upath import UPath

from pipeline.core.errors import UsageError
from pipeline.files.storage import write
from pipeline.store.shards.damaged_files import read_parsed

LAYOUT = 2
FILE = "gistmill.json"
# readers: of version 0.2
FOLDERS = ("tables", "compacted", "steps", "runs", "shared", "journal", "removed", "readers")


class _Stated(BaseModel):
    layout: StrictInt


def check_layout(warehouse: UPath) -> int:
    """The warehouse's layout. Raises UsageError if a later gistmill made it, DamagedError if the
    file does not state a layout."""
    stated = read_parsed(warehouse / FILE, _Stated.model_validate_json)
    layout = stated.layout if stated else 1
    if layout > LAYOUT:
        raise UsageError(
            f"{warehouse}: made by a later gistmill (layout {layout}, this one knows {LAYOUT}); "
            "update, or name another warehouse"
        )
    return layout


def raise_layout(warehouse: UPath) -> None:
    """Write that the warehouse has today's layout. Raises as `check_layout` does."""
    if check_layout(warehouse) < LAYOUT:
        write(warehouse / FILE, json.dumps({"layout": LAYOUT}).encode())
