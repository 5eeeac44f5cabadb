"""Statistics of the corpus and its memories: `gistmill report --corpus`.

As in ReadAgent's figures 2, 4, 5 and 7: the distributions of words per document and gist memory, of
pages and of compression rates.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobs.output.cells import Table
from pipeline.core.errors import UsageError
from pipeline.files.place import AnyPath
from pipeline.store import connect
from pipeline.store.sql.connection import query as rows_of
from pipeline.store.sql.memory_names import is_shared_sql

_MEASURES = f"""
select memory, measure, rows_of from sizes group by memory, measure, rows_of
order by min(place), not {is_shared_sql("memory")}, memory"""
_OF = "measure = {} and memory is not distinct from {}"
_VALUES = "select value from sizes where {} and value is not null"
_SUMMARY = """
select count(value) as n, avg(value) as mean, min(value) as min, quantile_cont(value, 0.25) as q1,
  median(value) as median, quantile_cont(value, 0.75) as q3, max(value) as max
from sizes where {}"""


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


def distributions(warehouse: AnyPath, run: str | None) -> list[Distribution]:
    """Every measure of every memory of a run. Raises UsageError where there is no such run."""
    with connect(warehouse, run) as connection:
        return distributions_of(connection)


def distributions_of(connection: Any) -> list[Distribution]:
    """Every measure of every memory of the run that `connection` shows."""
    return [
        Distribution(
            measure=of["measure"],
            memory=of["memory"],
            **rows_of(connection, _SUMMARY.format(_where(of)))[0],
        )
        for of in rows_of(connection, _MEASURES)
    ]


def samples(connection: Any) -> list[tuple[dict[str, Any], list[float]]]:
    """Every measure of every memory, with its name and unit, and its values."""
    return [
        (of, [row["value"] for row in rows_of(connection, _VALUES.format(_where(of)))])
        for of in rows_of(connection, _MEASURES)
    ]


def distribution_table(found: Sequence[Distribution]) -> Table:
    """The printed table; memories are named only where the run has several."""
    several = len({one.memory for one in found} - {None}) > 1
    return Table([_row(one, several) for one in found])


def _row(of: Distribution, with_memory: bool) -> dict[str, str | None]:
    numbers = {name: getattr(of, name) for name in ("mean", "min", "q1", "median", "q3", "max")}
    shown = {k: None if v is None else f"{v:,.1f}" for k, v in numbers.items()}
    memory = {"memory": of.memory} if with_memory else {}
    return {"": of.measure, **memory, "n": f"{of.n:,}", **shown}


def _where(of: Mapping[str, Any]) -> str:
    return _OF.format(_text(of["measure"]), _text(of["memory"]))


def _text(value: str | None) -> str:
    return "null" if value is None else "'" + value.replace("'", "''") + "'"


def draw_histograms(warehouse: AnyPath, run: str | None, picture: Path) -> None:
    """Draw a histogram of every measure into the file `picture` (.png, .svg, .pdf).

    Raises UsageError if matplotlib is missing or does not support the suffix, or the file cannot be
    written.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError("--picture needs matplotlib; pip install 'gistmill[plots]'") from None
    figure = Figure(figsize=(11, 6), layout="constrained")
    kinds = figure.canvas.get_supported_filetypes()
    if picture.suffix.removeprefix(".") not in kinds:
        raise UsageError(f"--picture {picture}: no such kind of file; write a .png or .svg")
    with connect(warehouse, run) as connection:
        found = samples(connection)
    several = len({of["memory"] for of, _ in found} - {None}) > 1
    for place, (of, values) in enumerate(found, 1):
        axes = figure.add_subplot(-(-len(found) // 3), 3, place)
        name = f"{of['measure']} ({of['memory']})" if several and of["memory"] else ""
        _histogram(axes, values, name or of["measure"], of["rows_of"])
    try:
        figure.savefig(picture, dpi=150)
    except OSError as error:
        raise UsageError(f"--picture {picture}: {error.strerror}; write it elsewhere") from None


def _histogram(axes: Any, values: list[float], label: str, rows_of: str) -> None:
    axes.hist(values, bins=min(40, max(1, len(set(values)))), color="#4477aa")
    axes.set_xlabel(label)
    axes.set_ylabel(rows_of)
