"""The options that reading verbs have in common, and the keys of verbs that go on with a stored
run."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from upath import UPath

from pipeline.files.place import as_path
from pipeline.store import connect
from pipeline.store.runs.run_folder import RunFolder
from pipeline.store.sql.connect import run_name

WAREHOUSE = as_path("warehouse")
KEYS: Mapping[str, tuple[str, ...]] = {
    "rate add": ("warehouse", "run", "rater", "cluster"),
    "rate audit": ("warehouse", "run", "n", "seed", "cluster"),
    "retry": ("warehouse", "run", "problem", "cluster"),
}


@dataclass(frozen=True)
class ReadOptions:
    """The options of verbs that read a run, by default the one that was started last. `by` and
    `where` are SQL over the questions."""

    warehouse: UPath = WAREHOUSE
    run: str | None = None
    by: str | None = None
    where: str | None = None
    columns: str | None = None  # of tables of methods, with commas between them
    names: str | None = None  # canonical, paper or a file; None: what suits the output
    method: str | None = None
    metric: str | None = None  # of `compare`: names with commas between them
    rater: str | None = None
    plugins: str | None = None
    memory: str | None = None  # of `show`, and which of its pages
    page: str | None = None
    address: str | None = None  # of a cluster's dashboard
    port: int = 7645  # of `view`
    older_than: str | None = None  # of `gc`
    format: str | None = None  # of exports
    to: str = "-"
    caption: str | None = None  # of exported tables
    label: str | None = None
    marks: str | None = None  # of best values
    n: int = 200  # of sheets for people
    seed: int = 0
    person: str = ""
    rows: int = 10_000  # of `sql`: printed at most
    seconds: float = 600.0
    memory_limit: str | None = None
    price: str | None = None  # of `report`: PROMPT,REPLY[,CACHED], money a million tokens
    split_shared: bool = False  # the costs of shared memory steps, among the methods

    @contextmanager
    def opened(self) -> Iterator[tuple[RunFolder, Any]]:
        """The folder of the run, and a connection that shows its rows. Raises UsageError."""
        name = run_name(self.warehouse, self.run)
        with connect(self.warehouse, name) as connection:
            yield RunFolder(self.warehouse, name), connection
