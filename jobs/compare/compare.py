"""Compare methods pair by pair, on the questions that both have a value of, by the paired test of
jobs/statistics/paired_test.py."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from jobs.compare.paired_values import (
    RunValues,
    Side,
    Value,
    chosen_metrics,
    measures_of_answers,
    resolve_method,
)
from jobs.config.options import ReadOptions
from jobs.statistics.paired_test import Paired, holm, is_tie, paired
from pipeline.core.errors import UsageError


@dataclass(frozen=True)
class Difference:
    """One question on which two methods differ: their values, and a - b."""

    question_id: str
    document_id: str
    a: float
    b: float
    difference: float


@dataclass(frozen=True)
class Row:
    """Two methods by one metric. `figures` are None if no question has a value of both.

    `only_a`, `only_b`: questions left out, as the other method has no value of them; `otherwise`:
    questions left out, as the two runs ask something else by the same id. `problems_a`,
    `problems_b`: questions of the n whose answer has a problem; `measures_answers`: a problem
    counts 0, and more is better. `p_holm`: adjusted over all rows.
    """

    metric: str
    a: Side
    b: Side
    figures: Paired | None
    only_a: int
    only_b: int
    otherwise: int
    problems_a: int
    problems_b: int
    measures_answers: bool
    is_right_or_wrong: bool  # it measures answers, and all values are 0 or 100
    differences: tuple[Difference, ...]  # the highest first, so wins of a before losses
    by: str | None = None  # the group of questions
    p_holm: float | None = None


@dataclass(frozen=True)
class Comparison:
    """All rows, by metric. `is_best`: b is the best method by the same data. By run: `raters`, the
    rater whose verdicts count, and `not_done`, the number of inputs not done yet."""

    rows: tuple[Row, ...]
    is_best: bool
    is_one_pair: bool  # otherwise rows have no `differences`
    raters: dict[str, str | None]
    not_done: dict[str, int]
    notes: tuple[str, ...]  # on columns that are compared by several measures
    left_out: tuple[dict[str, Any], ...]  # damaged files, and why


def compare(options: ReadOptions, methods: Sequence[str], is_baseline: bool = False) -> Comparison:
    """Compare two methods, the first of a pair as A; one as A with every other, or as B if it
    `is_baseline`; or (none given) all with the best by each metric, which is B. With two runs A is
    of the first and B of the second. With `by` in each of the first run's groups.

    Raises UsageError for unknown runs, methods and metrics, and if nothing can be compared.
    """
    if len(methods) > 2:
        raise UsageError(f"{methods[2]}: a third method; compare takes two: gistmill compare A B")
    names = _run_names(options)
    with ExitStack() as stack:
        opened = {
            name: stack.enter_context(RunValues.opened(replace(options, run=name)))
            for name in dict.fromkeys(names)
        }
        runs = [opened[name] for name in names]
        metrics, notes = chosen_metrics(runs, options.metric)
        wanted = [(metric, a, b) for metric in metrics for a, b in _pairs(runs, methods, metric)]
        if is_baseline:
            wanted = [(metric, b, a) for metric, a, b in wanted]
        is_one_pair = len({(a, b) for _, a, b in wanted}) == 1
        of_answers = {name for run in runs for name in measures_of_answers(run)}
        rows = [_row(metric, a, b, runs, metric in of_answers, by)
                for by in runs[0].groups for metric, a, b in wanted]  # fmt: skip
        _refuse_nothing(rows, metrics)
        return Comparison(
            rows=_finished(rows, is_one_pair),
            is_best=not methods and len(runs) == 1,
            is_one_pair=is_one_pair,
            raters={run.name: run.rater for run in runs},
            not_done={run.name: run.not_done for run in runs},
            notes=tuple(notes),
            left_out=tuple({row["file"]: row for run in runs for row in run.left_out}.values()),
        )


def _run_names(options: ReadOptions) -> list[str | None]:
    """The run, or two: that of A and that of B."""
    if options.run is None:
        return [None]
    names = [name.strip() for name in options.run.split(",")]
    if len(names) > 2 or not all(names):
        raise UsageError(f"run={options.run}: name one run, or two: run=A_RUN,B_RUN")
    return [*names] if len(set(names)) == 2 else [names[0]]


def _pairs(
    runs: Sequence[RunValues], methods: Sequence[str], metric: str
) -> Iterator[tuple[Side, Side]]:
    """The pairs to compare by a metric, each side a run and a method."""
    first, last = runs[0], runs[-1]
    if methods and (len(methods) == 2 or len(runs) == 2):
        yield _pair(first, last, methods[0], methods[-1])
        return
    if len(runs) == 2:
        both = [method for method in first.methods if method in last.methods]
        if not both:
            raise UsageError(f"run={first.name},{last.name}: no method in both; name A and B")
        yield from ((Side(first.name, method), Side(last.name, method)) for method in both)
        return
    chosen = (
        resolve_method(methods[0], first.methods, first.name) if methods else first.best(metric)
    )
    for method in first.methods if chosen is not None else ():
        if method != chosen:
            pair = (Side(first.name, str(chosen)), Side(first.name, method))
            yield pair if methods else pair[::-1]


def _pair(first: RunValues, last: RunValues, of_a: str, of_b: str) -> tuple[Side, Side]:
    a = Side(first.name, resolve_method(of_a, first.methods, first.name))
    b = Side(last.name, resolve_method(of_b, last.methods, last.name))
    if a == b:
        raise UsageError(f"{of_b}: A and B are both {a.method} of run {a.run}; name two methods")
    return a, b


def _row(
    metric: str,
    a: Side,
    b: Side,
    runs: Sequence[RunValues],
    measures_answers: bool,
    by: str | None,
) -> Row:
    of_a, of_b = runs[0].values(a.method, metric, by), runs[-1].values(b.method, metric, by)
    both = [key for key in sorted(of_a) if key in of_b]
    same = [key for key in both if of_a[key].asked == of_b[key].asked]
    pairs = [(of_a[key], of_b[key]) for key in same]
    values = [value for pair in pairs for value in (pair[0].value, pair[1].value)]
    return Row(
        metric=metric,
        a=a,
        b=b,
        figures=_figures(pairs),
        only_a=len(of_a) - len(both),
        only_b=len(of_b) - len(both),
        otherwise=len(both) - len(same),
        problems_a=sum(one.has_problem for one, _ in pairs),
        problems_b=sum(one.has_problem for _, one in pairs),
        measures_answers=measures_answers,
        is_right_or_wrong=measures_answers and all(value in (0, 100) for value in values),
        differences=_differences(pairs),
        by=by,
    )


def _figures(pairs: Sequence[tuple[Value, Value]]) -> Paired | None:
    if not pairs:
        return None
    a, b = ([one.value for one in of] for of in zip(*pairs, strict=True))
    return paired(a, b, [one.document_id for one, _ in pairs])


def _differences(pairs: Sequence[tuple[Value, Value]]) -> tuple[Difference, ...]:
    found = [
        Difference(a.question_id, a.document_id, a.value, b.value, a.value - b.value)
        for a, b in pairs
        if not is_tie(a.value, b.value)
    ]
    return tuple(sorted(found, key=lambda one: (-one.difference, one.question_id)))


def _finished(rows: Sequence[Row], is_one_pair: bool) -> tuple[Row, ...]:
    """The rows with their p-values adjusted over all that have one; the questions of one pair."""
    adjusted = iter(holm([row.figures.p for row in rows if row.figures]))
    return tuple(
        replace(
            row,
            p_holm=next(adjusted) if row.figures else None,
            differences=row.differences if is_one_pair else (),
        )
        for row in rows
    )


def _refuse_nothing(rows: Sequence[Row], metrics: Sequence[str]) -> None:
    """Raise UsageError unless there is something to compare."""
    of = ", ".join(metrics)
    if not rows:
        raise UsageError(
            f"only one method has a value of {of}; there is nothing to compare it with"
        )
    if any(row.figures for row in rows):
        return
    row = rows[0]
    raise UsageError(
        f"no question in common: {row.only_a} have a value of {of} by {row.a.method} of run "
        f"{row.a.run} alone, {row.only_b} by {row.b.method} of run {row.b.run} alone, and "
        f"{row.otherwise} ids stand for other questions in the other run"
    )
