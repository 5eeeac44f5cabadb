"""The options that reading verbs share, such as prices and rates, and the keys of verbs that
continue a stored run."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from upath import UPath

from pipeline.core.engine import Price
from pipeline.core.errors import UsageError
from pipeline.files.storage import as_path
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


def price_of(written: str) -> Price:
    """Parse `--price PROMPT,REPLY[,CACHED]`. Raises UsageError for another form."""
    prompt, reply, *cached = numbers("price", written, "PROMPT,REPLY[,CACHED]")
    try:
        return Price(input=prompt, output=reply, cached_input=cached[0] if cached else None)
    except ValidationError as error:
        raise UsageError(f"--price {written}: {error.errors()[0]['msg']}") from None


def numbers(option: str, written: str, form: str) -> list[float]:
    """Two numbers, or three if the form allows a third. Raises UsageError for others."""
    try:
        found = [float(part) for part in written.split(",")]
    except ValueError:
        found = []
    if len(found) not in (2, 2 + ("[" in form)) or not all(0 <= n < float("inf") for n in found):
        unit = "tokens a second" if option == "rates" else "money a million tokens"
        raise UsageError(f"--{option} {written}: write {form} in {unit}")
    return found
