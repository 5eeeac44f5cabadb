"""Render a report: tables, intervals and provenance, as Markdown or for a terminal."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from jobs.output.cells import Part, Table, cell, counted
from jobs.output.print_tables import as_markdown, on_terminal
from jobs.report.intervals import LEAST_DOCUMENTS
from jobs.report.means import Mean
from jobs.report.memory_sizes import distribution_table as size_table
from jobs.report.planned_against_made import planned_tables
from jobs.report.report import FALLBACK, Report, Row
from pipeline.work.stage import Column

_SPREAD = (
    "Mean over all questions, a problem counts 0 [95% interval over documents] / mean over "
    "answered questions only:"
)
_FEWER = "(n=...): the mean is over so many of the row's n answers, those that have such a value."
_FEWER_IN_HEADING = "(n=...): the means of the column are over so many answers of each method."
_INCOMPLETE = (
    "INCOMPLETE: {} of {} inputs are not done; means are over those that are. "
    "Run the same command again to resume."
)
_COST = (
    "Calls and tokens are those of each method's own stages, without judging. Those of memories:"
)
_UNASKED = (
    "No question was asked; these are the memories. `gistmill show DOCUMENT` prints one, "
    "`gistmill ask` and runs with questions answer from them."
)
_WITHOUT_INTERVAL = f"n/a: no interval over fewer than {LEAST_DOCUMENTS} documents."
_BEST = (
    "*: the best of its column, of the methods with the most answers (floors and ceilings "
    "compete, too); only where more is better."
)
_SD = "Standard deviation over repeats, of each repeat's mean (n - 1); {} repeats, {}:"
REPEATED = {
    "memory": "memories made anew in each",
    "questions": "questions asked anew of one memory",
}
_NO_MODEL = {
    "extractive": (
        "The extractive engine answered: sentences picked from the text by word counts, no "
        "language model. The table shows that the pipeline works on real text, not what a model "
        "would score."
    ),
    "simulated": (
        "The simulated engine answered: it takes a model's time and says nothing worth reading. "
        "Calls, tokens and times are what the table shows; scores mean nothing."
    ),
}


def render(report: Report, intervals: bool = True) -> str:
    """The report as Markdown; a run prints it without `intervals` at its end."""
    return as_markdown(parts_of(report, intervals))


def printed_parts(report: Report, whole: bool, intervals: bool = True) -> list[Part]:
    """The output of a command: `whole` Markdown tables, or tables fitted to a terminal."""
    made = for_terminal if on_terminal(whole) else parts_of
    return made(report, intervals)


def for_terminal(report: Report, intervals: bool = True) -> list[Part]:
    """The report for a terminal, with the best values marked, and in a column's heading the number
    of answers that all its means are over."""
    parts = parts_of(report, intervals)
    if not report.rows:
        return parts
    place = next(place for place, part in enumerate(parts) if isinstance(part, Table))
    table = parts[place]
    assert isinstance(table, Table)
    found = {column.heading: _shared_n(report, column.measure) for column in report.columns}
    named = {name: f"{name} (n={n})" for name, n in found.items() if n is not None}
    rows = [
        {named.get(k, k): _without_n(v) if k in named else v for k, v in row.items()}
        for row in table.rows
    ]
    headings = {c.measure: named.get(c.heading, c.heading) for c in report.columns}
    best = frozenset((place, headings[measure]) for place, row in enumerate(report.rows)
                     for measure in row.best)  # fmt: skip
    parts[place] = replace(table, rows=rows, best=best)
    if named and not any("(n=" in str(value) for row in rows for value in row.values()):
        parts[place + 1] = _FEWER_IN_HEADING
    if best:
        parts.insert(place + 1, _BEST)
    return parts


def _without_n(value: object) -> object:
    return value.partition(" (n=")[0] if isinstance(value, str) else value


def _shared_n(report: Report, measure: str) -> int | None:
    """The number of answers that all means of a measure are over; None if they differ, or are over
    all answers of their rows."""
    means = [(row.means[measure].n, row.counts.get("n"))
             for row in report.rows if measure in row.means]  # fmt: skip
    same = {n for n, _ in means}
    return same.pop() if len(same) == 1 and any(n != of_row for n, of_row in means) else None


def parts_of(report: Report, intervals: bool = True) -> list[Part]:
    """The texts and tables of a report, the scores first among the tables."""
    parts = [*_head(report), *(_answers(report) if report.rows else _unasked(report))]
    if report.stages:
        parts.append(Table([_stage(row) for row in report.stages]))
    if report.planned:
        parts += planned_tables(report.planned)
    if report.rows:
        parts += _spreads(report, intervals)
    return [*parts, provenance_line(report), *_no_model(report)]


def _head(report: Report) -> list[Part]:
    return [f"# {report.run}", *_incomplete(report), _corpus(report)]


def _answers(report: Report) -> list[Part]:
    """The tables of methods, and the costs of their memories."""
    scores = _by_method(report, _scores, 1)  # n is in each part of it
    parts: list[Part] = [scores]
    if any("(n=" in str(value) for row in scores.rows for value in row.values()):
        parts.append(_FEWER)
    parts.append(_by_method(report, _cost))
    if report.memories:
        parts += [_COST, Table(_memories(report))]
    return parts


def _unasked(report: Report) -> list[Part]:
    """The tables of a run that was asked nothing: its memories and their sizes."""
    memories = [Table(_memories(report))] if report.memories else []
    sizes = [Table(size_table(report.sizes))] if report.sizes else []
    return [_UNASKED, *memories, *sizes]


def _spreads(report: Report, intervals: bool) -> list[Part]:
    """The tables of the variation of means: over repeats and, with `intervals`, documents."""
    parts: list[Part] = []
    if (repeats := report.foot["repeats"]) > 1:
        title = _SD.format(repeats, REPEATED[report.foot["repeat_from"]])
        parts += [title, _by_method(report, _sds)]
    if intervals:
        parts += [_SPREAD, _by_method(report, _spread), *_why_without_interval(report)]
    return parts


def _by_method(
    report: Report, columns: Callable[[Row, Report], dict[str, object]], more_keys: int = 0
) -> Table:
    """A row per method and group, whose first columns are in each part of the table."""
    groups = any(row.by is not None for row in report.rows)
    rows = [
        {"method": row.method, **({"by": row.by} if groups else {}), **columns(row, report)}
        for row in report.rows
    ]
    return Table(rows, num_keys=1 + groups + more_keys)


def notes(report: Report) -> list[str]:
    """Notes that a reader of the scores must know first."""
    return [*_incomplete(report), *_no_model(report)]


def _incomplete(report: Report) -> list[str]:
    not_done, planned = report.inputs["not_done"], report.inputs["planned"]
    return [_INCOMPLETE.format(not_done, planned)] if not_done else []


def _no_model(report: Report) -> list[str]:
    return [] if report.foot["is_model"] else [_NO_MODEL[report.foot["engine"]]]


def report_page(text: str) -> str:
    """The report for report.md: HTML, images and links in names and values stay text."""
    return text.replace("<", "&lt;").replace("](", "]\\(")


def _scores(row: Row, report: Report) -> dict[str, object]:
    found = {c.heading: _value(row, c) for c in report.columns}
    return {"n": row.counts.get("n"), **found}


def _value(row: Row, column: Column) -> float | str | None:
    """A mean, with the number it is over if that is not the row's; or the count for the method. If
    the rater scored no answer, the number that it left unscored."""
    unscored = row.counts.get("unscored")
    if column.measure not in row.means:
        return f"- ({unscored} unscored)" if column.is_judged and unscored else (
            row.counts.get(column.measure))  # fmt: skip
    mean = row.means[column.measure]
    return mean.mean if mean.n == row.counts.get("n") else f"{cell(mean.mean)} (n={mean.n})"


def _cost(row: Row, report: Report) -> dict[str, object]:
    """The counts of a method, including those of its own memories if any method has one."""
    own = ("memory_calls", "memory_tokens") if len(report.memories) > 1 else ()
    names = ("answered", "unscored", "calls", "tokens", *own)
    return {_heading(name): row.counts.get(name) for name in names}


def _heading(name: str) -> str:
    return name.replace("_", " ")


def _stage(row: dict[str, Any]) -> dict[str, object]:
    return {
        "stage": row["stage"],
        "calls": row["calls"],
        "prompt tokens": row["prompt_tokens"],
        "cached": row["cached_tokens"],
        "cached %": row["cached_share"],
        "reply tokens": row["reply_tokens"],
    }


def _spread(row: Row, report: Report) -> dict[str, object]:
    return {heading: _interval(row.means.get(name)) for heading, name in _with_spread(report)}


def _with_spread(report: Report) -> list[tuple[str, str]]:
    """Heading and measure of the columns whose spread is printed."""
    return [
        (column.heading if column.measure in report.measures else column.measure, column.measure)
        for column in report.columns
        if column.has_interval
    ]


def _interval(mean: Mean | None) -> str:
    if mean is None or mean.mean is None:
        return "-"
    limits = "n/a" if mean.low is None else f"{mean.low:.1f}..{mean.high:.1f}"
    answered = "-" if mean.answered_mean is None else f"{mean.answered_mean:.1f}"
    return f"{mean.mean:.1f} [{limits}] / {answered} (n={mean.answered_n})"


def _why_without_interval(report: Report) -> list[str]:
    """One line if the interval of some mean is n/a."""
    measures = [measure for _, measure in _with_spread(report)]
    means = [row.means[name] for row in report.rows for name in measures if name in row.means]
    return [_WITHOUT_INTERVAL] if any(mean.low is None for mean in means) else []


def _sds(row: Row, report: Report) -> dict[str, object]:
    """The standard deviations, each with its number of repeats if that is not the row's."""
    shown = {c.heading: row.means.get(c.measure) for c in report.columns if c != FALLBACK}
    repeats = max((mean.repeats for mean in shown.values() if mean), default=0)
    return {"repeats": repeats, **{name: _sd(mean, repeats) for name, mean in shown.items()}}


def _sd(mean: Mean | None, repeats: int) -> str | None:
    if mean is None or mean.sd is None:
        return None
    return f"{mean.sd:.2f}" + ("" if mean.repeats == repeats else f" (n={mean.repeats})")


def _corpus(report: Report) -> str:
    documents, words = report.memory["documents"], report.memory["words"]
    size = f"{counted(documents, 'document')}, {counted(words, 'word')}"
    return size if report.memories else f"{size}; no pages"


def _memories(report: Report) -> list[dict[str, object]]:
    """A row per memory, without the size of the corpus, which is printed above."""
    left_out = ("documents", "words")
    return [
        {_heading(k): v for k, v in row.items() if k not in left_out} for row in report.memories
    ]


def provenance_line(report: Report) -> str:
    """The provenance of the numbers on one line."""
    of = report.foot
    given = "".join(f" · answers of {name} from {file}" for name, file in of["imported"].items())
    unkept = "".join(f" · what {name} was sent is not kept" for name in of["without_prompts"])
    versions = ", ".join(f"{name} {version}" for name, version in of["versions"].items())
    return (
        f"corpus {of['corpus']} · engine {of['engine']} · prompts {of['family']} "
        f"({of['wording']} words) · replies {of['replies']} · "
        f"rater {of['rater'] or 'none that is a model'}{given}{unkept} · "
        f"commit {', '.join(of['commits'])} · {versions}"
    )
