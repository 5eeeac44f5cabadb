"""The values of every question that `compare` pairs, read from the views of one run, and the
metrics by which it compares: measures that have a value per question."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from jobs.config.options import ReadOptions
from jobs.report.chosen import chosen_rater, create_chosen_table, shown_columns
from pipeline.core.errors import UsageError
from pipeline.core.registry import nearest
from pipeline.core.sql_files import sql_beside
from pipeline.store.runs.run_folder import RunFolder
from pipeline.store.sql.connection import query
from pipeline.work.stage import Column

_SQL = sql_beside(__file__)


@dataclass(frozen=True)
class Side:
    """One of the two methods of a pair, and its run."""

    run: str
    method: str


@dataclass(frozen=True)
class Value:
    """A method's value of one metric for one question: the mean over its repeats. `asked`
    identifies the question's content: equal values mean the same question."""

    document_id: str
    question_id: str
    value: float
    has_problem: bool
    asked: str


class RunValues:
    """The values of one run, of the questions that `where` leaves and by one rater.

    `methods` are in the run's order, `measures` those with values, `quality` the names of the
    report's columns that measure answers, `groups` those of `by`.
    """

    def __init__(self, connection: Any, folder: RunFolder, options: ReadOptions) -> None:
        facts = folder.report_facts("methods", "columns")
        self.connection, self.name = connection, folder.path.name
        create_chosen_table(connection, options)
        self.rater = chosen_rater(connection, options.rater)
        connection.execute("set variable rater = ?", [self.rater])
        query(connection, _SQL["valued"])
        self.groups: list[str | None] = [row["by_value"] for row in query(connection, _GROUPS)]
        self.methods: list[str] = facts["methods"]
        self.columns, self.quality = shown_columns(connection, facts["columns"])
        self.measures = [row["measure"] for row in query(connection, _MEASURES)]
        self.not_done: int = query(connection, _NOT_DONE)[0]["not_done"]
        self.left_out = query(connection, "from left_out")

    @staticmethod
    @contextmanager
    def opened(options: ReadOptions) -> "Iterator[RunValues]":
        """The values of the run that the options name. Raises UsageError as `gistmill report`
        does."""
        with options.opened() as (folder, connection):
            yield RunValues(connection, folder, options)

    def values(
        self, method: str, metric: str, by: str | None = None
    ) -> dict[tuple[str, str], Value]:
        """The values of a method in a group, by document and question."""
        self._choose(method, metric)
        self.connection.execute("set variable by_value = ?", [by])
        rows = query(self.connection, _SQL["values"])
        return {(row["document_id"], row["question_id"]): Value(**row) for row in rows}

    def best(self, metric: str) -> str | None:
        """The method with the highest mean, of those over the most questions, as means over fewer
        are over other questions; of equal ones the first; None if none has values."""
        self._choose(None, metric)
        rows = query(self.connection, _SQL["means"])
        most = max((row["n"] for row in rows), default=0)
        means = {row["method"]: row["mean"] for row in rows if row["n"] == most}
        return max((m for m in self.methods if m in means), key=means.__getitem__, default=None)

    def _choose(self, method: str | None, metric: str) -> None:
        self.connection.execute("set variable method = ?", [method])
        self.connection.execute("set variable metric = ?", [metric])


def resolve_method(name: str, methods: Sequence[str], run: str) -> str:
    """The method of this name, of this name without arguments, or whose name begins so.

    `methods` are those of the run called `run`. Raises UsageError if it has none, or several.
    """
    ways = (
        [m for m in methods if m == name],
        [m for m in methods if m.partition("(")[0] == name],
        [m for m in methods if m.startswith(name)],
    )
    found = next((way for way in ways if way), [])
    if not found:
        near = nearest(name, methods, 5)
        raise UsageError(f"{name[:200]!r}: no such method in run {run}; nearest: {near}")
    if len(found) > 1:
        near = nearest(name, found, 5)
        raise UsageError(f"{name!r}: {len(found)} methods of run {run}; write one of them: {near}")
    return found[0]


_GROUPS = "select distinct by_value from chosen order by 1 nulls first"
_MEASURES = "select distinct measure from valued order by measure"
_NOT_DONE = "select count(*) filter (not_done) as not_done from planned_done_rows"


def chosen_metrics(runs: Sequence[RunValues], wanted: str | None) -> tuple[list[str], list[str]]:
    """The measures to compare by, and notes on columns that stand for several measures.

    `wanted`: names of measures or headings of the report, with commas between them; None: the
    columns that measure answers. Raises UsageError for unknown names and if there are no values.
    """
    measures = [*dict.fromkeys(m for run in runs for m in run.measures)]
    columns = {column.measure: column for run in runs for column in run.columns}
    if wanted is None:
        names = [name for name in columns if name in runs[0].quality]
    else:
        names = [_named(name.strip(), columns, measures) for name in wanted.split(",")]
    parts = {name: _parts(columns, name) for name in names}
    notes = [
        f"{name} is no mean over questions: compared by {', '.join(own)}"
        for name, own in parts.items()
        if own != (name,)
    ]
    found = [*dict.fromkeys(m for own in parts.values() for m in own if m in measures)]
    if not found:
        known = nearest("", measures) or "none, as no question is answered"
        raise UsageError(f"no answer has a score; add metric=one of {known}")
    return found, notes


def measures_of_answers(run: RunValues) -> set[str]:
    """The measures of which more is better and a problem counts 0."""
    columns = {column.measure: column for column in run.columns}
    better = [name for name, column in columns.items() if column.more_is_better]
    return {measure for name in (*better, *run.quality) for measure in _parts(columns, name)}


def _named(name: str, columns: Mapping[str, Column], measures: Sequence[str]) -> str:
    """The measure of this name, or of this heading in the report."""
    headings = {column.heading.casefold(): column.measure for column in columns.values()}
    found = name if name in measures else headings.get(name.casefold(), name)
    if found not in measures and found not in columns:
        known = [*measures, *(column for column in columns if column not in measures)]
        raise UsageError(f"metric={name}: no such metric; nearest: {nearest(name, known, 5)}")
    if not set(_parts(columns, found)) <= set(measures):
        raise UsageError(f"metric={name}: no question has a value of it")
    return found


def _parts(columns: Mapping[str, Column], name: str) -> tuple[str, ...]:
    """The measures of questions that a column is computed from: mostly itself."""
    column = columns.get(name)
    if column is None:
        return (name,)
    return (*column.geometric_mean_of,) or (*column.mean_of_means[:1],) or (name,)
