"""Statistics of the corpus and its memories: `gistmill report --corpus`.

As in ReadAgent's figures 2, 4, 5 and 7: the distributions of words per document and gist memory, of
pages and of compression rates.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from jobs.output.cells import Table
from pipeline.core.errors import UsageError
from pipeline.store.shards.layout import is_shared_sql
from pipeline.store.sql.connection import query

_SIZES = f"""
select measure, memory, rows_of, count(value) as n, avg(value) as mean, min(value) as min,
  quantile_cont(value, 0.25) as q1, median(value) as median, quantile_cont(value, 0.75) as q3,
  max(value) as max, list(value) filter (value is not null) as values
from sizes group by measure, memory, rows_of
order by min(place), not {is_shared_sql("memory")}, memory"""


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """The distribution of a measure over documents or pages; numbers are None if `n` is 0."""

    measure: str
    memory: str | None  # None: of the documents themselves
    n: int
    mean: float | None
    min: float | None
    q1: float | None
    median: float | None
    q3: float | None
    max: float | None


def sizes(connection: Any) -> list[dict[str, Any]]:
    """A row per measure and memory: the fields of Distribution, the name of the counted rows
    (`rows_of`), and the `values`."""
    return query(connection, _SIZES)


def distributions(connection: Any) -> list[Distribution]:
    names = [field.name for field in fields(Distribution)]
    return [Distribution(**{name: row[name] for name in names}) for row in sizes(connection)]


def distribution_table(found: Sequence[Distribution]) -> Table:
    """Memories are named only if the run has several."""
    several = len({one.memory for one in found} - {None}) > 1
    return Table([_row(one, several) for one in found])


def _row(of: Distribution, with_memory: bool) -> dict[str, str | None]:
    numbers = {name: getattr(of, name) for name in ("mean", "min", "q1", "median", "q3", "max")}
    shown = {k: None if v is None else f"{v:,.1f}" for k, v in numbers.items()}
    memory = {"memory": of.memory} if with_memory else {}
    return {"": of.measure, **memory, "n": f"{of.n:,}", **shown}


def draw_histograms(connection: Any, picture: Path) -> None:
    """Draw a histogram of every measure into the file `picture` (.png, .svg, .pdf).

    Raises UsageError if matplotlib is missing or does not support the suffix, or the file cannot be
    written.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError("picture= needs matplotlib; pip install matplotlib") from None
    figure = Figure(figsize=(11, 6), layout="constrained")
    kinds = figure.canvas.get_supported_filetypes()
    if picture.suffix.removeprefix(".") not in kinds:
        raise UsageError(f"picture={picture}: no such kind of file; write a .png or .svg")
    found = sizes(connection)
    several = len({row["memory"] for row in found} - {None}) > 1
    for place, row in enumerate(found, 1):
        axes = figure.add_subplot(-(-len(found) // 3), 3, place)
        of = f" ({row['memory']})" if several and row["memory"] else ""
        values = row["values"] or []
        axes.hist(values, bins=min(40, max(1, len(set(values)))), color="#4477aa")
        axes.set_xlabel(row["measure"] + of)
        axes.set_ylabel(row["rows_of"])
    try:
        figure.savefig(picture, dpi=150)
    except OSError as error:
        raise UsageError(f"picture={picture}: {error.strerror}; write it elsewhere") from None
