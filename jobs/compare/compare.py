"""Compares methods in pairs, on the questions for which both have a value, by the test of
jobs/statistics/statistics.py. Values are read from the views of one run, or of two."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any

from jobs.config.options import ReadOptions
from jobs.report.report import chosen_rater, create_chosen_table, shown_columns
from jobs.statistics.statistics import Paired, holm, is_tie, paired, swapped
from pipeline.core.errors import UsageError
from pipeline.core.registry import nearest
from pipeline.core.sql_files import sql_beside
from pipeline.store.runs.run_folder import RunFolder
from pipeline.store.sql.connection import query
from pipeline.work.stage import Column

_SQL = sql_beside(__file__)
_GROUPS = "select distinct by_value from chosen order by 1 nulls first"
_MEASURES = "select distinct measure from valued order by measure"
_NOT_DONE = "select count(*) filter (not_done) as not_done from planned_done_rows"


@dataclass(frozen=True)
class MethodOfRun:
    run: str
    method: str


@dataclass(frozen=True)
class Difference:
    question_id: str
    document_id: str
    a: float
    b: float
    difference: float


@dataclass(frozen=True)
class ComparedPair:
    """Two methods by one metric. `figures` is None if no question has a value of both. `only_a`,
    `only_b`: questions of which the other method has no value; `otherwise`: questions that the two
    runs ask differently under one id."""

    metric: str
    a: MethodOfRun
    b: MethodOfRun
    figures: Paired | None
    only_a: int
    only_b: int
    otherwise: int
    differences: tuple[Difference, ...]  # the highest first, so wins of a before losses
    by: str | None = None  # the group of questions
    p_holm: float | None = None


@dataclass(frozen=True)
class Comparison:
    """All pairs, by metric. By run: `raters`, the rater whose verdicts count, and `not_done`, the
    number of inputs not done yet."""

    rows: tuple[ComparedPair, ...]
    is_one_pair: bool  # otherwise rows have no `differences`
    raters: dict[str, str | None]
    not_done: dict[str, int]
    notes: tuple[str, ...]  # on columns that are compared by several measures
    left_out: tuple[dict[str, Any], ...]  # damaged files, and why


@dataclass(frozen=True)
class QuestionValue:
    """A method's value of one metric for one question: the mean over its repeats. Questions are the
    same where the hash `content` is equal."""

    document_id: str
    question_id: str
    value: float
    content: str


Values = Mapping[tuple[str, str], QuestionValue]  # by document and question


class RunValues:
    """The values of one run on the questions that `where` selects, by one rater. `measures` have
    values, `quality` names the report's columns that measure answers, `groups` are the values of
    `by`."""

    def __init__(self, connection: Any, folder: RunFolder, options: ReadOptions) -> None:
        facts = folder.report_facts("methods", "columns")
        self._connection, self.name = connection, folder.path.name
        create_chosen_table(connection, options)
        self.rater = chosen_rater(connection, options.rater)
        connection.execute("set variable rater = ?", [self.rater])
        query(connection, _SQL["valued"])
        self.groups: list[str | None] = [row["by_value"] for row in query(connection, _GROUPS)]
        self.methods: list[str] = facts["methods"]
        columns, self.quality = shown_columns(connection, facts["columns"])
        self.columns = {column.measure: column for column in columns}
        self.measures = [row["measure"] for row in query(connection, _MEASURES)]
        self.not_done: int = query(connection, _NOT_DONE)[0]["not_done"]
        self.left_out = query(connection, "from left_out")

    @staticmethod
    @contextmanager
    def opened(options: ReadOptions) -> "Iterator[RunValues]":
        with options.opened() as (folder, connection):
            yield RunValues(connection, folder, options)

    def values(self, method: str, metric: str, by: str | None = None) -> Values:
        for name, value in (("method", method), ("metric", metric), ("by_value", by)):
            self._connection.execute(f"set variable {name} = ?", [value])
        rows = query(self._connection, _SQL["values"])
        return {(row["document_id"], row["question_id"]): QuestionValue(**row) for row in rows}


def compare(options: ReadOptions, methods: Sequence[str], is_baseline: bool = False) -> Comparison:
    """Compare two methods, A and B; or one as A with every other, or as B if it `is_baseline`. With
    two runs A is of the first and B of the second, by default each method of both. Raises
    UsageError for unknown names, and if nothing can be compared."""
    if len(methods) > 2:
        raise UsageError(f"{methods[2]}: a third method; compare takes two: gistmill compare A B")
    names = _run_names(options.run)
    with ExitStack() as stack:
        opened = {name: stack.enter_context(RunValues.opened(replace(options, run=name)))
                  for name in dict.fromkeys(names)}  # fmt: skip
        runs = [opened[name] for name in names]
        metrics, notes = chosen_metrics(runs, options.metric)
        pairs = _pairs(runs, methods)
        if is_baseline:
            pairs = [(b, a) for a, b in pairs]
        rows = [_compared(metric, a, b, runs, by)
                for by in runs[0].groups for metric in metrics for a, b in pairs]  # fmt: skip
        if not any(row.figures for row in rows):
            raise UsageError(f"no two methods have a value of {', '.join(metrics)} on one question")
        if len(pairs) > 1:
            rows = [replace(row, differences=()) for row in rows]
        adjusted = iter(holm([row.figures.p for row in rows if row.figures]))
        return Comparison(
            rows=tuple(replace(row, p_holm=next(adjusted)) if row.figures else row for row in rows),
            is_one_pair=len(pairs) == 1,
            raters={run.name: run.rater for run in runs},
            not_done={run.name: run.not_done for run in runs},
            notes=tuple(notes),
            left_out=tuple({row["file"]: row for run in runs for row in run.left_out}.values()),
        )


def _run_names(run: str | None) -> list[str | None]:
    if run is None:
        return [None]
    names = [name.strip() for name in run.split(",")]
    if len(names) > 2 or not all(names):
        raise UsageError(f"run={run}: name one run, or two: run=A_RUN,B_RUN")
    return [*dict.fromkeys(names)]


def chosen_metrics(runs: Sequence[RunValues], wanted: str | None) -> tuple[list[str], list[str]]:
    """The measures to compare by, by default the measures of answers, and notes on columns that
    stand for several. `wanted` has measures or headings. Raises UsageError for unknown ones."""
    measures = [*dict.fromkeys(m for run in runs for m in run.measures)]
    columns = {name: column for run in runs for name, column in run.columns.items()}
    if wanted is None:
        names = [name for name in columns if name in runs[0].quality]
    else:
        names = [_measure(name.strip(), columns, measures) for name in wanted.split(",")]
    parts = {name: _parts(columns, name) for name in names}
    notes = [
        f"{name} is no mean over questions: compared by {', '.join(of_name)}"
        for name, of_name in parts.items()
        if of_name != (name,)
    ]
    metrics = [*dict.fromkeys(m for of_name in parts.values() for m in of_name if m in measures)]
    if not metrics:
        some = nearest("", measures) or "none, as no question is answered"
        raise UsageError(f"no answer has a score; add metric=one of {some}")
    return metrics, notes


def _measure(name: str, columns: Mapping[str, Column], measures: Sequence[str]) -> str:
    headings = {column.heading.casefold(): column.measure for column in columns.values()}
    measure = name if name in measures else headings.get(name.casefold(), name)
    if measure not in measures and measure not in columns:
        near = nearest(name, [*dict.fromkeys([*measures, *columns])], 5)
        raise UsageError(f"metric={name}: no such metric; nearest: {near}")
    if not set(_parts(columns, measure)) <= set(measures):
        raise UsageError(f"metric={name}: no question has a value of it")
    return measure


def _parts(columns: Mapping[str, Column], name: str) -> tuple[str, ...]:
    """The measures of questions that a column is computed from: mostly the column's own."""
    column = columns.get(name)
    if column is None:
        return (name,)
    return (*column.geometric_mean_of,) or (*column.mean_of_means[:1],) or (name,)


def resolve_method(name: str, methods: Sequence[str], run: str) -> str:
    """The method with this name; else with this name before its arguments; else whose name begins
    with it. Raises UsageError if the run has none, or several."""
    ways = (
        [m for m in methods if m == name],
        [m for m in methods if m.partition("(")[0] == name],
        [m for m in methods if m.startswith(name)],
    )
    matching = next(filter(None, ways), [])
    if len(matching) == 1:
        return matching[0]
    near = nearest(name, matching or methods, 5)
    if matching:
        several = f"{len(matching)} methods of run {run}"
        raise UsageError(f"{name!r}: {several}; write one of them: {near}")
    raise UsageError(f"{name[:200]!r}: no such method in run {run}; nearest: {near}")


def _pairs(
    runs: Sequence[RunValues], methods: Sequence[str]
) -> list[tuple[MethodOfRun, MethodOfRun]]:
    def resolved(run: RunValues, name: str) -> MethodOfRun:
        return MethodOfRun(run.name, resolve_method(name, run.methods, run.name))

    first, last = runs[0], runs[-1]
    if methods and (len(methods) == 2 or len(runs) == 2):
        a, b = resolved(first, methods[0]), resolved(last, methods[-1])
        if a == b:
            both = f"A and B are both {a.method} of run {a.run}"
            raise UsageError(f"{methods[-1]}: {both}; name two methods")
        return [(a, b)]
    if len(runs) == 2:
        in_both = [method for method in first.methods if method in last.methods]
        if not in_both:
            raise UsageError(f"run={first.name},{last.name}: no method in both; name A and B")
        return [(MethodOfRun(first.name, m), MethodOfRun(last.name, m)) for m in in_both]
    if not methods:
        raise UsageError("name a method: gistmill compare A, or A B; the report marks the best")
    a = resolved(first, methods[0])
    return [(a, MethodOfRun(first.name, m)) for m in first.methods if m != a.method]


def _compared(
    metric: str, a: MethodOfRun, b: MethodOfRun, runs: Sequence[RunValues], by: str | None
) -> ComparedPair:
    of_a, of_b = runs[0].values(a.method, metric, by), runs[-1].values(b.method, metric, by)
    pairs, num_both = _same(of_a, of_b), len(of_a.keys() & of_b.keys())
    differences = [
        Difference(a.question_id, a.document_id, a.value, b.value, a.value - b.value)
        for a, b in pairs
        if not is_tie(a.value, b.value)
    ]
    return ComparedPair(
        metric=metric,
        a=a,
        b=b,
        figures=_figures(pairs),
        only_a=len(of_a) - num_both,
        only_b=len(of_b) - num_both,
        otherwise=num_both - len(pairs),
        differences=tuple(sorted(differences, key=lambda d: (-d.difference, d.question_id))),
        by=by,
    )


def _same(a: Values, b: Values) -> list[tuple[QuestionValue, QuestionValue]]:
    """Values of the same questions; an id that stands for another question is no pair."""
    return [(a[key], b[key]) for key in sorted(a) if key in b and a[key].content == b[key].content]


def _figures(pairs: Sequence[tuple[QuestionValue, QuestionValue]]) -> Paired | None:
    if not pairs:
        return None
    a, b = zip(*pairs, strict=True)
    return paired([v.value for v in a], [v.value for v in b], [v.document_id for v in a])


def against_each(run: RunValues, metric: str) -> dict[str, list[dict[str, Any]]]:
    """By baseline, a row per method with which it has a question in common: the method's `figures`
    against it, and `p_holm`, adjusted over the rows of the baseline."""
    values = {method: run.values(method, metric) for method in run.methods}
    figures: dict[tuple[str, str], Paired] = {}
    for a, b in combinations(run.methods, 2):
        if of_both := _figures(_same(values[a], values[b])):
            figures[a, b], figures[b, a] = of_both, swapped(of_both)
    by_baseline = {
        b: _against({a: figures[a, b] for a in run.methods if (a, b) in figures})
        for b in run.methods
    }
    return {baseline: rows for baseline, rows in by_baseline.items() if rows}


def against_run(run: RunValues, other: RunValues, metric: str) -> list[dict[str, Any]]:
    """Rows of `_against`, for the methods that have a question in common in both runs."""
    both = [method for method in run.methods if method in other.methods]
    figures = {m: _figures(_same(run.values(m, metric), other.values(m, metric))) for m in both}
    return _against({method: of_both for method, of_both in figures.items() if of_both})


def _against(figures: Mapping[str, Paired]) -> list[dict[str, Any]]:
    """A row per method: its `figures` against the baseline, and `p_holm`, adjusted over these."""
    adjusted = holm([of_pair.p for of_pair in figures.values()])
    return [
        {"method": method, "figures": asdict(of_pair), "p_holm": p}
        for (method, of_pair), p in zip(figures.items(), adjusted, strict=True)
    ]
