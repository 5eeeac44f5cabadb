"""The corpus and its memory in numbers: `gistmill report --corpus`.

What ReadAgent shows in its figures 2, 4, 5 and 7: how the words of documents and of their gist
memories are distributed, and pages and compression with them.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.errors import UsageError
from pipeline.place import AnyPath
from pipeline.store import connect
from pipeline.store import query as rows_of

# Words are those of stages/words.py. A page without a gist is left out of its document's memory.
_BY_DOCUMENT = """
with pages_of as (
  select document_id, count(*) as pages from pages where text is not null group by all),
gists_of as (
  select document_id, sum(num_words) as gist_words from gists where gist is not null group by all)
select d.num_words as words, p.pages, g.gist_words,
  100 * (1 - g.gist_words / d.num_words) as compression
from documents d left join pages_of p using (document_id) left join gists_of g using (document_id)
where d.problem is null and not d.skipped order by d.document_id"""
_BY_PAGE = """
select p.num_words as page_words, g.num_words as page_gist_words
from pages p left join gists g using (document_id, page_index)
where p.text is not null order by p.document_id, p.page_index"""
_MEASURES = {
    "words": "words per document",
    "gist_words": "words per gist memory",
    "pages": "pages per document",
    "compression": "compression rate of the gists, %",
    "page_words": "words per page",
    "page_gist_words": "words per gist",
}
_SUMMARY = """
select count(x) as n, avg(x) as mean, min(x) as min, quantile_cont(x, 0.25) as q1,
  median(x) as median, quantile_cont(x, 0.75) as q3, max(x) as max from ({}) t(x)"""


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """One measure over documents or pages; numbers are null where there is nothing."""

    measure: str
    n: int
    mean: float | None
    min: float | None
    q1: float | None
    median: float | None
    q3: float | None
    max: float | None

    def row(self) -> dict[str, str | None]:
        """As it is printed."""
        numbers = {key: value for key, value in vars(self).items() if key not in ("measure", "n")}
        shown = {k: None if v is None else f"{v:,.1f}" for k, v in numbers.items()}
        return {"": self.measure, "n": f"{self.n:,}", **shown}


def distributions(warehouse: AnyPath, run: str | None) -> list[Distribution]:
    """Every measure of a run. Raises UsageError where there is no such run."""
    with connect(warehouse, run) as connection:
        return [
            Distribution(
                measure=label,
                **rows_of(connection, _SUMMARY.format(f"select {name} from ({_source(name)})"))[0],
            )
            for name, label in _MEASURES.items()
        ]


def _source(name: str) -> str:
    return _BY_PAGE if name.startswith("page_") else _BY_DOCUMENT


def draw(warehouse: AnyPath, run: str | None, picture: Path) -> None:
    """A histogram of every measure, as the file's suffix says (.png, .svg, .pdf).

    Raises UsageError where matplotlib is missing or does not know the suffix.
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
        for place, (name, label) in enumerate(_MEASURES.items(), 1):
            axes = figure.add_subplot(2, 3, place)
            rows = rows_of(connection, f"select {name} as x from ({_source(name)})")
            _histogram(axes, [row["x"] for row in rows if row["x"] is not None], label)
    try:
        figure.savefig(picture, dpi=150)
    except OSError as error:
        raise UsageError(f"--picture {picture}: {error.strerror}; write it elsewhere") from None


def _histogram(axes: Any, values: list[float], label: str) -> None:
    axes.hist(values, bins=min(40, max(1, len(set(values)))), color="#4477aa")
    axes.set_xlabel(label)
    axes.set_ylabel("pages" if label in ("words per page", "words per gist") else "documents")
