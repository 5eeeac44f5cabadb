"""A report as Markdown: the tables, the intervals, and the foot."""

from typing import Any

from jobs.plan.outcome import rendered_beside
from jobs.report import Mean, Report, Row
from jobs.tables import markdown

_HEADINGS = {"lr_1": "LR-1", "lr_2": "LR-2"}
_SPREAD = (
    "Mean over all questions, a problem counts 0 [95% interval over documents] / mean over "
    "answered questions only:"
)
_INCOMPLETE = (
    "INCOMPLETE: {} of {} inputs are not done; means are over those that are. "
    "Run the same command again to go on."
)
_COST = "Calls and tokens are those of look-ups and answers; the memory took {} and {}."
_NO_MODEL = (
    "The extractive engine answered: sentences picked from the text by word counts, no language "
    "model. The table shows that the pipeline works on real text, not what a model would score."
)


def render(report: Report, intervals: bool = True) -> str:
    """What `gistmill report` prints; without `intervals`, what a run ends with."""
    groups = any(row.by is not None for row in report.rows)
    scores, cost, spread = (
        [{"method": row.method, **({"by": row.by} if groups else {}), **columns(row, report)}
         for row in report.rows]
        for columns in (_scores, _cost, _spread)
    )  # fmt: skip
    not_done, planned = report.inputs["not_done"], report.inputs["planned"]
    parts = [
        f"# {report.run}",
        *([_INCOMPLETE.format(not_done, planned)] if not_done else []),
        _memory(report),
        markdown(scores),
        markdown(cost),
        _COST.format(report.memory["calls"], report.memory["tokens"]),
        *([markdown([_stage(row) for row in report.stages])] if report.stages else []),
        *([rendered_beside(report.planned)] if report.planned else []),
        *([_SPREAD, markdown(spread)] if intervals else []),
        _foot(report),
    ]
    if not report.foot["is_model"]:
        parts.append(_NO_MODEL)
    return "\n\n".join(parts)


def _scores(row: Row, report: Report) -> dict[str, object]:
    def mean(measure: str) -> float | None:
        return row.means[measure].mean if measure in row.means else None

    return {
        "n": row.counts.get("n"),
        "CR": mean("compression_rate"),
        "# LU": mean("lookups"),
        **{_HEADINGS.get(measure, measure): mean(measure) for measure in report.measures},
        "recall": mean("evidence_recall"),
        "any-hit": mean("evidence_any_hit"),
        "words read": mean("words_read"),
        "fallback %": row.counts.get("fallback"),
        "length": mean("length"),
    }


def _cost(row: Row, report: Report) -> dict[str, object]:
    return {
        "answered": row.counts.get("answered"),
        "unscored": row.counts.get("unscored"),
        "calls": row.counts.get("calls"),
        "tokens": row.counts.get("tokens"),
    }


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
    shown = (*report.measures, "evidence_recall")
    return {_HEADINGS.get(m, m): _interval(row.means.get(m)) for m in shown}


def _interval(mean: Mean | None) -> str:
    if mean is None or mean.mean is None:
        return "-"
    limits = "n/a" if mean.low is None else f"{mean.low:.1f}..{mean.high:.1f}"
    answered = "-" if mean.answered_mean is None else f"{mean.answered_mean:.1f}"
    repeats = "" if mean.sd is None else f" sd over repeats {mean.sd:.2f}"
    return f"{mean.mean:.1f} [{limits}] / {answered} (n={mean.answered_n}){repeats}"


def _memory(report: Report) -> str:
    memory = report.memory
    if not memory["pages"]:
        return f"{memory['documents']} documents, {memory['words']} words; no pages"
    gists = ""
    if memory["words_per_gist"] is not None:
        gists = (
            f" of {memory['words_per_page']:.0f} words, gists of {memory['words_per_gist']:.0f}: "
            f"gist compression {memory['gist_compression']:.1f}%, "
            f"{memory['truncated_gists']} gists truncated"
        )
    fallback = memory["fallback"]
    asked = "pages by rule" if fallback is None else f"pagination fell back {fallback:.1f}%"
    pages = f"{memory['documents']} documents, {memory['words']} words, {memory['pages']} pages"
    return f"{pages}{gists}; {asked}"


def _foot(report: Report) -> str:
    foot = report.foot
    versions = ", ".join(f"{name} {version}" for name, version in foot["versions"].items())
    return (
        f"corpus {foot['corpus']} · engine {foot['engine']} · prompts {foot['family']} "
        f"({foot['wording']} words) · replies {foot['replies']} · "
        f"rater {foot['rater'] or 'none that is a model'} · "
        f"commit {', '.join(foot['commits'])} · {versions}"
    )
