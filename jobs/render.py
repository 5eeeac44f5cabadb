"""Render a report as Markdown: tables, intervals and provenance."""

from collections.abc import Callable
from typing import Any

from jobs.corpus import table as size_table
from jobs.means import Mean
from jobs.plan.outcome import rendered_beside
from jobs.report import Report, Row
from jobs.tables import cell, markdown

_SPREAD = (
    "Mean over all questions, a problem counts 0 [95% interval over documents] / mean over "
    "answered questions only:"
)
_FEWER = "(n=...): the mean is over so many of the row's n answers, those that have such a value."
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
    """The text that `gistmill report` prints; a run prints it without `intervals` at its end."""
    not_done, planned = report.inputs["not_done"], report.inputs["planned"]
    parts = [
        f"# {report.run}",
        *([_INCOMPLETE.format(not_done, planned)] if not_done else []),
        _corpus(report),
        *(_answers(report) if report.rows else _unasked(report)),
        *([markdown([_stage(row) for row in report.stages])] if report.stages else []),
        *([rendered_beside(report.planned)] if report.planned else []),
        *([_SPREAD, markdown(_by_method(report, _spread))] if intervals and report.rows else []),
        _foot(report),
    ]
    if not report.foot["is_model"]:
        parts.append(_NO_MODEL[report.foot["engine"]])
    return "\n\n".join(parts)


def _answers(report: Report) -> list[str]:
    """The tables of methods, and what their memories cost."""
    scores = _by_method(report, _scores)
    return [
        markdown(scores),
        *([_FEWER] if any("(n=" in str(v) for row in scores for v in row.values()) else []),
        markdown(_by_method(report, _cost)),
        *([_COST, markdown(_memories(report))] if report.memories else []),
    ]


def _unasked(report: Report) -> list[str]:
    """The tables of a run that was asked nothing: its memories and their sizes."""
    return [
        _UNASKED,
        *([markdown(_memories(report))] if report.memories else []),
        *([markdown(size_table(report.sizes))] if report.sizes else []),
    ]


def _by_method(
    report: Report, columns: Callable[[Row, Report], dict[str, object]]
) -> list[dict[str, object]]:
    groups = any(row.by is not None for row in report.rows)
    return [
        {"method": row.method, **({"by": row.by} if groups else {}), **columns(row, report)}
        for row in report.rows
    ]


def page(text: str) -> str:
    """The report as report.md holds it: HTML, images and links in names and values stay text."""
    return text.replace("<", "&lt;").replace("](", "]\\(")


def _scores(row: Row, report: Report) -> dict[str, object]:
    found = {c.heading: _value(row, c.measure) for c in report.columns}
    return {"n": row.counts.get("n"), **found}


def _value(row: Row, measure: str) -> float | str | None:
    """A mean, with the number it is over where that is not the row's; or what is counted for the
    method."""
    if measure not in row.means:
        return row.counts.get(measure)
    mean = row.means[measure]
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
    shown = {
        column.heading if column.measure in report.measures else column.measure: column.measure
        for column in report.columns
        if column.has_interval
    }
    return {heading: _interval(row.means.get(name)) for heading, name in shown.items()}


def _interval(mean: Mean | None) -> str:
    if mean is None or mean.mean is None:
        return "-"
    limits = "n/a" if mean.low is None else f"{mean.low:.1f}..{mean.high:.1f}"
    answered = "-" if mean.answered_mean is None else f"{mean.answered_mean:.1f}"
    repeats = "" if mean.sd is None else f" sd over repeats {mean.sd:.2f}"
    return f"{mean.mean:.1f} [{limits}] / {answered} (n={mean.answered_n}){repeats}"


def _corpus(report: Report) -> str:
    size = f"{report.memory['documents']} documents, {report.memory['words']} words"
    return size if report.memories else f"{size}; no pages"


def _memories(report: Report) -> list[dict[str, object]]:
    """A row per memory, without the size of the corpus, which is printed above."""
    left_out = ("documents", "words")
    return [
        {_heading(k): v for k, v in row.items() if k not in left_out} for row in report.memories
    ]


def _foot(report: Report) -> str:
    foot = report.foot
    versions = ", ".join(f"{name} {version}" for name, version in foot["versions"].items())
    given = "".join(f" · answers of {name} from {file}" for name, file in foot["imported"].items())
    return (
        f"corpus {foot['corpus']} · engine {foot['engine']} · prompts {foot['family']} "
        f"({foot['wording']} words) · replies {foot['replies']} · "
        f"rater {foot['rater'] or 'none that is a model'}{given} · "
        f"commit {', '.join(foot['commits'])} · {versions}"
    )
