"""The metrics by which `compare` compares: measures that have a value per question."""

from collections.abc import Mapping, Sequence

from jobs.compare.paired_values import RunValues
from pipeline.core.errors import UsageError
from pipeline.core.registry import nearest
from pipeline.work.stage import Column


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
