"""Render a report as Markdown: tables, intervals and provenance."""

from typing import Any

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
    groups = any(row.by is not None for row in report.rows)
    scores, cost, spread = (
        [{"method": row.method, **({"by": row.by} if groups else {}), **columns(row, report)}
         for row in report.rows]
        for columns in (_scores, _cost, _spread)
    )  # fmt: skip
    parts = [
        f"# {report.run}",
        *_incomplete(report),
        _corpus(report),
        markdown(scores),
        *([_FEWER] if any("(n=" in str(v) for row in scores for v in row.values()) else []),
        markdown(cost),
        *([_COST, markdown(_memories(report))] if report.memories else []),
        *([markdown([_stage(row) for row in report.stages])] if report.stages else []),
        *([rendered_beside(report.planned)] if report.planned else []),
        *([_SPREAD, markdown(spread)] if intervals else []),
        foot(report),
        *_no_model(report),
    ]
    return "\n\n".join(parts)


def notes(report: Report) -> list[str]:
    """What a reader of the scores must know first."""
    return [*_incomplete(report), *_no_model(report)]


def _incomplete(report: Report) -> list[str]:
    not_done, planned = report.inputs["not_done"], report.inputs["planned"]
    return [_INCOMPLETE.format(not_done, planned)] if not_done else []


def _no_model(report: Report) -> list[str]:
    return [] if report.foot["is_model"] else [_NO_MODEL[report.foot["engine"]]]


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


def foot(report: Report) -> str:
    """The provenance of the numbers on one line."""
    of = report.foot
    versions = ", ".join(f"{name} {version}" for name, version in of["versions"].items())
    return (
        f"corpus {of['corpus']} · engine {of['engine']} · prompts {of['family']} "
        f"({of['wording']} words) · replies {of['replies']} · "
        f"rater {of['rater'] or 'none that is a model'} · "
        f"commit {', '.join(of['commits'])} · {versions}"
    )
