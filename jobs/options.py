"""The words of reading verbs: warehouse=, run= and the like. They never reach Hydra."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

from upath import UPath

from pipeline.errors import UsageError
from pipeline.place import place


@dataclass(frozen=True)
class ReadOptions:
    """What reading verbs take. `by` and `where` are SQL over the questions."""

    warehouse: UPath
    run: str | None = None
    by: str | None = None
    where: str | None = None
    method: str | None = None
    rater: str | None = None
    plugins: str | None = None
    address: str | None = None  # of a cluster's dashboard, written cluster.address


def read_options(words: Sequence[str], allowed: Sequence[str]) -> ReadOptions:
    """The options among `words`. Raises UsageError for any that the verb does not take."""
    found: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or key not in allowed:
            raise UsageError(f"{word!r}: not known here; it takes {', '.join(allowed)}=...")
        if not value:
            raise UsageError(f"{key}= is empty; give it a value or leave it out")
        found[key.removeprefix("cluster.")] = value
    known = {field.name for field in fields(ReadOptions)}
    assert {name.removeprefix("cluster.") for name in allowed} <= known
    warehouse = place(found.pop("warehouse", "warehouse"))
    return ReadOptions(warehouse=warehouse, **found)
