"""The values of every question that `compare` pairs, read from the views of one run."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from jobs.config.options import ReadOptions
from jobs.report.report import chosen_rater, create_chosen_table, shown_columns
from pipeline.core.errors import UsageError
from pipeline.core.registry import nearest
from pipeline.core.sql_files import sql_beside
from pipeline.store.runs.run_folder import RunFolder
from pipeline.store.sql.connection import query

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
    report's columns that measure answers.
    """

    def __init__(self, connection: Any, folder: RunFolder, options: ReadOptions) -> None:
        facts = folder.report_facts("methods", "columns")
        self.connection, self.name = connection, folder.path.name
        create_chosen_table(connection, options)
        self.rater = chosen_rater(connection, options.rater)
        connection.execute("set variable rater = ?", [self.rater])
        query(connection, _SQL["valued"])
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

    def values(self, method: str, metric: str) -> dict[tuple[str, str], Value]:
        """The values of a method by document and question."""
        self._choose(method, metric)
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


_MEASURES = "select distinct measure from valued order by measure"
_NOT_DONE = "select count(*) filter (not_done) as not_done from inputs"
