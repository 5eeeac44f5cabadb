"""The parts of a printed report: its headline, tables, costs, intervals and provenance; and a
paper's figures beside those of a run."""

import csv
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from jobs.audit.judge_audit import audit_parts
from jobs.config.options import ReadOptions
from jobs.output.print_tables import Heading, Measured, Part, Table, counted, markdown
from jobs.report.columns import COST, READING, SCORES, group_of
from jobs.report.report import FALLBACK, Report, Row, report_of
from jobs.statistics.statistics import LEAST_DOCUMENTS
from pipeline.core.errors import UsageError
from pipeline.core.registry import existing_conf_folders, hint
from pipeline.work.stage import Column

_SPREAD = (
    "Mean over all questions, a problem counts 0 [95% interval over documents] / mean over "
    "answered questions only:"
)
_FEWER = "(n=...): the mean is over so many of the row's n answers, those that have such a value."
ANSWERED = "(... answered): so many of the mean's answers have no problem; the others count 0."
_INCOMPLETE = (
    "INCOMPLETE: {} of {} inputs are not done; means are over those that are. "
    "Run the same command again to resume."
)
_MEMORIES = "The run's memories, and what it took to make them:"
_UNASKED = (
    "No question was asked; these are the memories. `gistmill show DOCUMENT` prints one, "
    "`gistmill ask` and runs with questions answer from them."
)
_WITHOUT_INTERVAL = f"n/a: no interval over fewer than {LEAST_DOCUMENTS} documents."
BEST = (
    "from the highest mean of a column in which more is better down to the last that does not "
    "differ significantly from it (sign-flip test over documents, p < 0.05 by Holm over the "
    "table); among the methods with the most answers, floors and ceilings included."
)
_NO_BEST = (
    "No best is marked: in no column does even the lowest mean differ significantly from the "
    "highest (sign-flip test over documents, p < 0.05 by Holm over {} tests; impossible with "
    "fewer than 6 documents)."
)
_SD = "Standard deviation over repeats, of each repeat's mean (n - 1); {} repeats, {}:"
REPEATED = {
    "memory": "memories made anew in each",
    "questions": "questions asked anew of one memory",
}
_HEADINGS = {"prompt_tokens": "prompt tokens", "cached_tokens": "cached",
             "cached_share": "cached %", "reply_tokens": "reply tokens"}  # fmt: skip
_QUANTILES = ("mean", "min", "q1", "median", "q3", "max")
_COST = (
    "Calls and tokens: of each method's own stages; memory: of the memory steps that its rows "
    "depend on, for all documents; judging: of its verdicts."
)
_MONEY = "Money by these calls and tokens; in that of the run every call counts once."
_IN_EACH = "all of it in the row of each (--split-shared divides it)"
_MONEY_OF = ("own stages", "memory", "judging", "all")
GROUPS = {group.lower(): group for group in (SCORES, READING, COST)}
"""The groups by the names that `only=` takes."""


def report_page(parts: Sequence[Part]) -> str:
    """The text of report.md; HTML, images and links in names and values are escaped."""
    return markdown(parts).replace("<", "&lt;").replace("](", "]\\(")


def parts_of(report: Report, costs: bool = True) -> list[Part]:
    """The texts and tables of a report; scores are the first table. `costs`: include the costs of
    methods."""
    parts: list[Part] = [Heading(report.run), *notes(report), _size(report)]
    if report.rows:
        parts += [*score_parts(report), *(cost_parts(report) if costs else ())]
    else:
        parts.append(_UNASKED)
    parts += [*memory_parts(report), *stage_parts(report)]
    if report.rows:
        parts += spread_parts(report)
    parts += audit_parts(report.audits, report.columns)
    return [*parts, provenance_line(report), *report.findings]


def score_parts(report: Report, intervals: Collection[str] = ()) -> list[Part]:
    """The means of every method, and the meaning of their brackets and marks; `intervals`: the
    measures that have theirs beside the mean."""
    scores = score_table(report, intervals)
    means = [value for row in scores.rows for value in row.values() if isinstance(value, Measured)]
    parts: list[Part] = [scores]
    if any(mean.n != mean.of for mean in means):
        parts.append(_FEWER)
    if any(mean.answered not in (None, mean.n) for mean in means):
        parts.append(ANSWERED)
    if report.num_tests and not any(row.best for row in report.rows):
        parts.append(_NO_BEST.format(report.num_tests))
    return parts


def headline_parts(report: Report) -> list[Part]:
    """The report on a terminal: the scores of every method in one table, the main ones first and
    with their 95% intervals."""
    means = [row.means[name] for row in report.rows for name in report.main if name in row.means]
    lines = notes(report)
    if has_intervals := any(mean.low is not None for mean in means):
        lines.append("[..]: 95% interval over documents.")
    lines += [*report.findings, "More: gistmill report --all, or only=scores, reading or cost."]
    scores = [column for column in report.columns if column.measure in report.measures]
    scores.sort(key=lambda column: column.measure not in report.main)
    parts = memory_parts(report)
    if report.rows:
        shown = replace(report, columns=tuple(scores))
        parts = score_parts(shown, report.main if has_intervals else ())
    return [Heading(f"{report.run}: {_size(report)}"), *parts, "\n".join(lines)]


def group_parts(report: Report, group: str) -> list[Part]:
    """All parts of one of the GROUPS."""
    columns = tuple(c for c in report.columns if group_of(c, report) == group)
    shown = replace(report, columns=columns, num_tests=report.num_tests * (group == SCORES))
    parts: list[Part] = [Heading(f"{report.run}: {_size(report)}"), *notes(report)]
    if group == COST:
        return [*parts, *(cost_parts(report) if report.rows else []), *stage_parts(report)]
    parts += [*score_parts(shown), *spread_parts(shown)] if report.rows else []
    if group == READING:
        return [*parts, *memory_parts(report)]
    return [*parts, *audit_parts(report.audits, columns)]


def _size(report: Report) -> str:
    documents, words = report.memory["documents"], report.memory["words"]
    return f"{counted(documents, 'document')}, {counted(words, 'word')}"


def memory_parts(report: Report) -> list[Part]:
    """The run's memories, and their sizes if nothing was asked. The size of the corpus is printed
    above; columns without values are left out."""
    parts: list[Part] = []
    if report.memories:
        names = [
            name
            for name in report.memories[0]
            if name not in ("documents", "words")
            and any(row[name] is not None for row in report.memories)
        ]
        rows = [{name.replace("_", " "): row[name] for name in names} for row in report.memories]
        parts += [*([_MEMORIES] if report.rows else ()), Table(rows)]
    return [*parts, *([distribution_table(report.sizes)] if report.sizes else ())]


def distribution_table(sizes: Sequence[Mapping[str, Any]]) -> Table:
    """The sizes of documents and memories; memories are named only if the run has several."""
    has_several = len({row["memory"] for row in sizes} - {None}) > 1
    rows = []
    for row in sizes:
        numbers = {k: None if row[k] is None else f"{row[k]:,.1f}" for k in _QUANTILES}
        memory = {"memory": row["memory"]} if has_several else {}
        rows.append({"": row["measure"], **memory, "n": f"{row['n']:,}", **numbers})
    return Table(rows)


def stage_parts(report: Report) -> list[Part]:
    rows = [{_HEADINGS.get(name, name): n for name, n in row.items()} for row in report.stages]
    return [Table(rows)] if rows else []


def cost_parts(report: Report) -> list[Part]:
    names = ["answered", "unscored", "calls", "tokens"]
    more = [f"{part}{name}" for part in ("memory_", "judging_") for name in ("calls", "tokens")]
    names += [name for name in more if any(row.counts.get(name) for row in report.rows)]
    table = by_method(report, lambda row: {n.replace("_", " "): row.counts.get(n) for n in names})
    # A line per memory and set of methods, of steps on which several methods depend, or none.
    lines, key = [_COST], itemgetter("memory", "methods")
    shared = sorted((step for step in report.memory_steps if len(step["methods"]) != 1), key=key)
    for (memory, methods), group in groupby(shared, key=key):
        steps = list(group)
        what = f"{', '.join(dict.fromkeys(step['stage'] for step in steps))} of {memory}"
        calls = counted(sum(step["calls"] for step in steps), "call")
        took = f"{calls}, {counted(sum(step['tokens'] for step in steps), 'token')}"
        divided = "divided among them" if report.is_split else _IN_EACH
        lines.append(
            f"{len(methods)} methods rest on {what}: {took}, {divided}."
            if methods
            else f"No method rests on {what}: {took}."
        )
    parts: list[Part] = [table, "\n".join(lines)]
    if "money" not in report.total:
        return parts
    without = f" Without a price: {', '.join(report.unpriced)}." if report.unpriced else ""
    return [*parts, f"{_MONEY}{without}", _money(report)]


def by_method(report: Report, cells: Callable[[Row], dict[str, object]]) -> Table:
    has_groups = any(row.by is not None for row in report.rows)
    rows = [
        {"method": row.method, **({"by": row.by} if has_groups else {}), **cells(row)}
        for row in report.rows
    ]
    return Table(rows)


def _money(report: Report) -> Table:
    def price(money: float) -> str:
        return f"{money:.2f}" if money >= 1 else f"{money:.2g}"

    def of_method(row: Row) -> dict[str, object]:
        parts = [row.counts.get(f"{part}money") or 0 for part in ("", "memory_", "judging_")]
        return dict(zip(_MONEY_OF, map(price, [*parts, sum(parts)]), strict=True))

    table = by_method(report, of_method)
    last = {**dict.fromkeys(table.names()), "method": "run", "all": price(report.total["money"])}
    return Table([*table.rows, last])


def spread_parts(report: Report) -> list[Part]:
    """The variation of means: over repeats and documents."""

    def sds(row: Row) -> dict[str, object]:
        means = {c.heading: row.means.get(c.measure) for c in report.columns if c != FALLBACK}
        return {
            "repeats": max((mean.repeats for mean in means.values() if mean), default=0),
            **{name: f"{mean.sd:.2f}" if mean and mean.sd is not None else None
               for name, mean in means.items()},
        }  # fmt: skip

    def spread(row: Row) -> dict[str, object]:
        cells: dict[str, object] = {}
        for column in columns:
            name = column.heading if column.measure in report.measures else column.measure
            mean = row.means.get(column.measure)
            if mean is None or mean.mean is None:
                cells[name] = "-"
                continue
            limits = "n/a" if mean.low is None else f"{mean.low:.1f}..{mean.high:.1f}"
            answered = "-" if mean.answered_mean is None else f"{mean.answered_mean:.1f}"
            cells[name] = f"{mean.mean:.1f} [{limits}] / {answered} (n={mean.answered_n})"
        return cells

    parts: list[Part] = []
    if (repeats := report.foot["repeats"]) > 1:
        title = _SD.format(repeats, REPEATED[report.foot["repeat_from"]])
        parts += [title, by_method(report, sds)]
    columns = [column for column in report.columns if column.has_interval]
    if columns:
        means = (row.means.get(column.measure) for row in report.rows for column in columns)
        parts += [_SPREAD, by_method(report, spread)]
        parts += [_WITHOUT_INTERVAL] if any(mean and mean.low is None for mean in means) else []
    return parts


def score_table(report: Report, intervals: Collection[str] = ()) -> Table:
    """The means of every method and group; of the measures in `intervals` these, too, in small
    print."""

    def scores(row: Row) -> dict[str, object]:
        values = {c.heading: _score(row, c, report, c.measure in intervals) for c in report.columns}
        return {"n": row.counts.get("n"), **values}

    return replace(by_method(report, scores), about_best=f"*: {BEST}")


def _score(
    row: Row, column: Column, report: Report, intervals: bool
) -> Measured | float | str | None:
    """What a row has in a column: its mean, with the number of answers without a problem if the
    column measures answers; else its count; a note if the rater scored none of its answers."""
    unscored = row.counts.get("unscored")
    if column.measure not in row.means:
        if column.is_judged and unscored:
            return f"- ({unscored} unscored)"
        return row.counts.get(column.measure)
    mean, small = row.means[column.measure], ""
    if intervals and column.has_interval:
        limits = "n/a" if mean.low is None else f"{mean.low:.1f}, {mean.high:.1f}"
        small = f"[{limits}]" + ("" if mean.sd is None else f" sd {mean.sd:.2f}")
    answered = mean.answered_n if column.measure in report.measures else None
    is_best = column.measure in row.best
    return Measured(mean.mean, mean.n, row.counts.get("n"), is_best, small, answered)


def notes(report: Report) -> list[str]:
    """What a reader of the scores must know first: that the run is incomplete, that another model
    answered, and what the engine is."""
    lines = [f"OTHER MODEL: {line}." for line in report.foot["other_models"]]
    if not_done := report.inputs["not_done"]:
        ended = report.foot.get("ended")
        incomplete = _INCOMPLETE.format(not_done, report.inputs["planned"])
        lines = [f"{incomplete} It ended early: {ended}." if ended else incomplete, *lines]
    note = report.foot.get("engine_note")
    return [*lines, *([note] if note else [])]


def provenance_line(report: Report) -> str:
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


_ABOUT = (
    "The paper's figures beside the run's. They come from other models, and in part from other "
    "questions: docs/papers.md says what is alike."
)
Figures = Sequence[Mapping[str, str]]


def published(options: ReadOptions) -> list[dict[str, Any]]:
    """A row per method, and split or group, of the paper's table, with both values of each measure.
    Raises UsageError if there are no figures of the run's experiment, or of its split."""
    with options.opened() as (folder, connection):
        config = (folder.config() or {})["config"]
        figures = figures_of(str(config["name"]), existing_conf_folders(config["plugins"]))
        split = config["corpus"].get("split")
        return _beside(report_of(connection, folder, options), figures, split, options.by)


def figures_of(experiment: str, confs: Sequence[Path]) -> Figures:
    """The rows of published/EXPERIMENT.csv in our `conf`, or a plugin's: canonical `method`,
    `split` and `by`, if the figure is of one split or group alone, `measure`, `value` (percent)
    and `paper`, the paper's name of the row. Raises UsageError if there is no such file."""
    files = {file.stem: file for conf in confs for file in (conf / "published").glob("*.csv")}
    if experiment not in files:
        near = hint(experiment, sorted(files))
        raise UsageError(f"--published: there are no figures of experiment={experiment}; {near}")
    with files[experiment].open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _beside(
    report: Report, figures: Figures, split: str | None, by: str | None
) -> list[dict[str, Any]]:
    headings = {column.measure: column.heading for column in report.columns}
    ours = {(row.method, row.by or ""): row.means for row in report.rows}
    rows: dict[tuple[str, str, str], dict[str, Any]] = {}
    for figure in figures:
        method, of_split, group = figure["method"], figure["split"], figure["by"]
        if (of_split and of_split != split) or bool(group) != (by is not None):
            continue
        about = {"method": method, "paper": figure["paper"], "split": of_split, "by": group}
        given = {key: value for key, value in about.items() if value}
        row = rows.setdefault((method, of_split, group), given)
        name = headings.get(figure["measure"], figure["measure"])
        mean = ours.get((method, group), {}).get(figure["measure"])
        row[name] = mean and mean.mean
        row[f"{name} (paper)"] = float(figure["value"])
    if not rows:
        has = [", ".join(sorted({figure[key] or "all" for figure in figures}))
               for key in ("split", "by")]  # fmt: skip
        raise UsageError(
            f"--published: the paper's figures are of the splits {has[0]} and the groups {has[1]}; "
            "see corpus.split= and by=question_type"
        )
    return list(rows.values())


def published_parts(rows: Sequence[Mapping[str, Any]]) -> list[Part]:
    """The parts that are printed; every row of the table has all columns."""
    names = dict.fromkeys(name for row in rows for name in row)
    table = Table([{name: row.get(name) for name in names} for row in rows])
    return [Heading("published"), _ABOUT, table]
