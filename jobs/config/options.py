"""The options that reading verbs have in common, and the keys of verbs that go on with a stored
run."""

from collections.abc import Mapping
from dataclasses import dataclass

from upath import UPath

from pipeline.files.place import as_path

WAREHOUSE = as_path("warehouse")
KEYS: Mapping[str, tuple[str, ...]] = {
    "rate add": ("warehouse", "run", "rater", "cluster"),
    "retry": ("warehouse", "run", "problem", "cluster"),
}


@dataclass(frozen=True)
class ReadOptions:
    """What a verb reads of a run, by default the one that was started last. `by` and `where` are
    SQL over the questions."""

    warehouse: UPath = WAREHOUSE
    run: str | None = None
    by: str | None = None
    where: str | None = None
    method: str | None = None
    rater: str | None = None
    plugins: str | None = None
