"""The values of every question that `compare` pairs, read from the views of one run."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from jobs.options import ReadOptions
from jobs.report import choose, chosen_rater, shown_columns
from pipeline.errors import UsageError
from pipeline.names import nearest
from pipeline.store import connect
from pipeline.store.runs import RunFolder
from pipeline.store.views import query, run_name


@dataclass(frozen=True)
class Side:
    """One of the two methods of a pair, and its run."""

    run: str
    method: str


@dataclass(frozen=True)
class Value:
    """A method's value of one metric for one question: the mean over its repeats. `asked` is equal
    where the question is the same."""

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

    def __init__(self, connection: Any, name: str, options: ReadOptions) -> None:
        facts = RunFolder(options.warehouse, name).report_facts("methods", "columns")
        self.connection, self.name = connection, name
        choose(connection, options)
        self.rater = chosen_rater(connection, options.rater)
        connection.execute("set variable rater = ?", [self.rater])
        query(connection, _VALUED)
        self.methods: list[str] = facts["methods"]
        self.columns, self.quality = shown_columns(connection, facts["columns"])
        self.measures = [row["measure"] for row in query(connection, _MEASURES)]
        self.not_done: int = query(connection, _NOT_DONE)[0]["not_done"]
        self.left_out = query(connection, "from left_out")

    @staticmethod
    @contextmanager
    def opened(options: ReadOptions) -> "Iterator[RunValues]":
        """Those of the run that the options name. Raises UsageError as `gistmill report` does."""
        name = run_name(options.warehouse, options.run)
        with connect(options.warehouse, name) as connection:
            yield RunValues(connection, name, options)

    def values(self, method: str, metric: str) -> dict[tuple[str, str], Value]:
        """The values of a method by document and question."""
        self._choose(method, metric)
        rows = query(self.connection, _VALUES)
        return {(row["document_id"], row["question_id"]): Value(**row) for row in rows}

    def best(self, metric: str) -> str | None:
        """The method with the highest mean, of those over the most questions, as means over fewer
        are over other questions; of equal ones the first; null where none has values."""
        self._choose(None, metric)
        rows = query(self.connection, _MEANS)
        most = max((row["n"] for row in rows), default=0)
        means = {row["method"]: row["mean"] for row in rows if row["n"] == most}
        return max((m for m in self.methods if m in means), key=means.__getitem__, default=None)

    def _choose(self, method: str | None, metric: str) -> None:
        self.connection.execute("set variable method = ?", [method])
        self.connection.execute("set variable metric = ?", [metric])


def resolved(name: str, methods: Sequence[str], run: str) -> str:
    """The method of this name; of this name without arguments; or whose name begins so.

    `methods` are those of the run called `run`. Raises UsageError where it has none, or several.
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


# Repeats are averaged per question, in order: else a sum's last digit differs from look to look.
# Questions of two runs are the same where the same is asked.
_VALUED = """create temp table valued as
select method, measure, document_id, question_id, avg(value order by value) as value,
  bool_or(m.problem is not null) as has_problem
from measures m join chosen using (question_id)
where value is not null and (rater is null or rater = getvariable('rater')) group by all"""
_VALUES = """
select v.document_id, question_id, value, has_problem,
  md5(to_json([question, options::varchar, "references"::varchar, answer_index::varchar])) as asked
from valued v join questions using (question_id)
where method = getvariable('method') and measure = getvariable('metric')"""
_MEANS = """
select method, avg(value order by value) as mean, count(*) as n
from valued where measure = getvariable('metric') group by method"""
_MEASURES = "select distinct measure from valued order by measure"
_NOT_DONE = "select count(*) filter (not_done) as not_done from inputs"
