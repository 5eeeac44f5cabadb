"""The keys of verbs that take few (`KEYS`), and the options of reading verbs, which Hydra does not
parse: warehouse=, run= and the like."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from upath import UPath

from pipeline.core.errors import UsageError
from pipeline.core.secrets import refuse_secret
from pipeline.files.place import as_path

_RUN = ("warehouse", "run")
# Which keys each verb takes that does not take those of `run`; `report --corpus` and `--html` by
# these names.
KEYS: Mapping[str, tuple[str, ...]] = {
    "report": (*_RUN, "by", "where", "rater"),
    "report --corpus": _RUN,
    "report --html": (*_RUN, "by", "where", "rater", "plugins"),
    "view": (*_RUN, "by", "where", "rater", "plugins", "port"),
    "status": (*_RUN, "cluster.address"),
    "trace": (*_RUN, "method", "plugins"),
    "compare": (*_RUN, "metric", "where", "rater"),
    "show": (*_RUN, "memory", "page"),
    "sql": _RUN,
    "ls": ("warehouse", "plugins"),
    "schema": ("plugins",),
    "rm": _RUN,
    "gc": ("warehouse", "older_than"),
    "cite": _RUN,
    "export predictions": (*_RUN, "method", "where", "format", "to"),
    "export report": (*_RUN, "method", "where", "format", "to", "by", "rater"),
    "export view": (*_RUN, "where", "to"),
    "rate add": (*_RUN, "rater", "cluster"),
    "rate sheet": (*_RUN, "method", "where", "n", "seed", "to"),
    "rate import": (*_RUN, "person"),
    "rate agreement": (*_RUN, "method", "where"),
    "retry": (*_RUN, "problem", "cluster"),
    "prompts export": ("plugins",),
}
_SQL = ("by", "where")  # not stored, and may hold a text that looks like an address


@dataclass(frozen=True)
class ReadOptions:
    """The options of reading verbs. `by` and `where` are SQL over the questions."""

    warehouse: UPath
    run: str | None = None
    by: str | None = None
    where: str | None = None
    method: str | None = None
    metric: str | None = None  # of `compare`: names with commas between them
    memory: str | None = None  # of `show`, and which of its pages
    page: str | None = None
    rater: str | None = None
    plugins: str | None = None
    older_than: str | None = None  # of `gc`
    format: str | None = None  # of exports
    to: str | None = None
    n: str | None = None  # of sheets for people
    seed: str | None = None
    person: str | None = None
    port: str | None = None  # of `view`
    address: str | None = None  # of a cluster's dashboard, written cluster.address


def read_options(words: Sequence[str], allowed: Sequence[str]) -> ReadOptions:
    """Parse `words`. Raises UsageError for options that are not `allowed`, and for secrets."""
    found: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or key not in allowed:
            raise UsageError(f"{word!r}: unknown option; there are {', '.join(allowed)}=...")
        if not value:
            raise UsageError(f"{key}= is empty; give it a value or leave it out")
        if key not in _SQL:
            refuse_secret(word)
        found[key.removeprefix("cluster.")] = value
    known = {field.name for field in fields(ReadOptions)}
    assert {name.removeprefix("cluster.") for name in allowed} <= known
    warehouse = as_path(found.pop("warehouse", "warehouse"))
    return ReadOptions(warehouse=warehouse, **found)
