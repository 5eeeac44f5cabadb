"""The columns of the table of methods, means of measures and counts: their groups, and the choice
by `columns=`; and names as papers print them, from conf/names.yaml, plugins and a user's file. A
method is printed with only the arguments in which it differs from the table's other methods."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from jobs.report.report import Report
from pipeline.core.errors import UsageError
from pipeline.core.registry import existing_conf_folders
from pipeline.core.settings import Settings, parsed_yaml
from pipeline.files.storage import as_path, refuse_unreachable_path
from pipeline.work.stage import Column

CANONICAL, PAPER = "canonical", "paper"
_METHOD = re.compile(r"([A-Za-z]\w*)(?:\((.*)\))?(?:\[(.*)\])?", re.DOTALL)


class Names(Settings):
    """Printed names by canonical name."""

    measures: Mapping[str, str] = {}
    methods: Mapping[str, str] = {}
    memories: Mapping[str, str] = {}
    corpora: Mapping[str, str] = {}

    def of_columns(self, columns: Sequence[Column]) -> tuple[Column, ...]:
        """Equal printed headings get the measure's name in brackets."""
        headings = [self.measures.get(column.measure, column.heading) for column in columns]
        number = Counter(headings)
        return tuple(
            replace(c, heading=text if number[text] == 1 else f"{text} ({c.measure})")
            for c, text in zip(columns, headings, strict=True)
        )

    def of_methods(self, names: Sequence[str]) -> dict[str, str]:
        """The printed names of a table's methods, with the arguments in which methods of one name
        differ; the canonical name if two would still be equal."""
        parts = {name: _split(name) for name in dict.fromkeys(names)}
        printed: dict[str, str] = {}
        for name, (base, arguments) in parts.items():
            variants = [of for other, of in parts.values() if other == base]
            differ = [
                f"{key}={value}"
                for key, value in arguments.items()
                if any(variant.get(key) != value for variant in variants)
            ]
            shown = self.methods.get(base, base) + (f" ({', '.join(differ)})" if differ else "")
            printed[name] = self.methods.get(name, shown)
        number = Counter(printed.values())
        return {name: text if number[text] == 1 else name for name, text in printed.items()}


def _split(name: str) -> tuple[str, dict[str, str]]:
    """A method's name without its arguments, and these, with the settings in square brackets; the
    whole name if it has none, or is not in our syntax."""
    match = _METHOD.fullmatch(name)
    groups = match.groups()[1:] if match else ()
    pairs = [part.partition("=")[::2] for group in groups if group for part in group.split(",")]
    if match is None or not pairs or not all(value for _, value in pairs):
        return name, {}
    return match[1], dict(pairs)


def read_names(wanted: str, plugins: str | None = None) -> Names | None:
    """The names for `names=`: a file's own go before those of the run's `plugins`, and these before
    ours in `conf`. None for `canonical`. Raises UsageError for an unusable file."""
    if wanted == CANONICAL:
        return None
    files = [conf / "names.yaml" for conf in reversed(existing_conf_folders(plugins))]
    paths = [str(file) for file in files if file.is_file()] + [wanted] * (wanted != PAPER)
    merged: dict[str, dict[str, str]] = {section: {} for section in Names.model_fields}
    for names in map(_read, paths):
        for section, by_name in merged.items():
            by_name.update(getattr(names, section))
    return Names(**merged)


def _read(path: str) -> Names:
    file = as_path(path)
    with refuse_unreachable_path(file, "names"):
        text = file.read_bytes()
    return parsed_yaml(text, Names, f"names={path}")


def named(report: Report, names: Names | None) -> Report:
    """The report with printed names in place of canonical ones; unchanged if `names` is None."""
    if names is None:
        return report
    methods = names.of_methods([row.method for row in report.rows])
    corpus, _, sha = report.foot["corpus"].rpartition(" ")
    memories = ({**row, "memory": names.memories.get(row["memory"], row["memory"])}
                for row in report.memories)  # fmt: skip
    return replace(
        report,
        columns=names.of_columns(report.columns),
        rows=tuple(replace(row, method=methods[row.method]) for row in report.rows),
        memories=tuple(memories),
        foot={**report.foot, "corpus": f"{names.corpora.get(corpus, corpus)} {sha}"},
    )


SCORES, READING, COST = "Scores", "Reading", "Cost"
_count = partial(Column, has_interval=False)
COST_COLUMNS = (
    _count("calls", "calls", 120, about="model calls of the method's own stages, without judging"),
    _count("tokens", "tokens", 121, about="prompt and reply tokens of those calls"),
)
COUNTS = (
    _count("answered", "answered", 110, about="answers without a problem"),
    _count("unscored", "unscored", 111, about="answers to which the rater's verdict is unreadable"),
    *COST_COLUMNS,
    _count(
        "memory_calls", "memory calls", 122,
        about="model calls of the memory steps that the method's rows rest on, for all documents",
    ),
    _count("memory_tokens", "memory tokens", 123, about="prompt and reply tokens of those calls"),
    _count("judging_calls", "judging calls", 124, about="model calls of the method's verdicts"),
    _count("judging_tokens", "judging tokens", 125, about="prompt and reply tokens of those calls"),
)  # fmt: skip


def with_columns(report: Report, wanted: str | None, more: Sequence[Column] = ()) -> Report:
    """The report with the columns that `columns=` names, in its order; None: all columns of the
    run, and `more`. A name is that of a measure or count, or a heading. Raises UsageError for a
    column that the run has not."""
    if wanted is None:
        return replace(report, columns=(*report.columns, *more))
    columns = known_columns(report)
    by_name = measures_by_name(columns)
    parts = [part.strip() for part in wanted.split(",") if part.strip()]
    if unknown := [part for part in parts if part.lower() not in (*by_name, "n")]:
        there = ", ".join(
            c.measure if c.measure == c.heading else f"{c.measure} ({c.heading})" for c in columns
        )
        raise UsageError(f"columns={unknown[0]}: no such column; the run has {there}")
    chosen = dict.fromkeys(by_name[part.lower()] for part in parts if part.lower() in by_name)
    shown = tuple(c for name in chosen for c in columns if c.measure == name)
    return replace(report, columns=shown)


def known_columns(report: Report) -> list[Column]:
    """The report's columns, and all counts of its methods."""
    columns = {column.measure: column for column in (*report.columns, *COUNTS)}
    for name in (name for row in report.rows for name in row.counts if name != "n"):
        columns.setdefault(name, _count(name, name.replace("_", " "), 200))
    return list(columns.values())


def measures_by_name(columns: Sequence[Column]) -> Mapping[str, str]:
    """The columns' measures by lower-case measure or heading; a measure goes before a heading."""
    headings = {column.heading.lower(): column.measure for column in columns[::-1]}
    return headings | {column.measure.lower(): column.measure for column in columns}


def group_of(column: Column, report: Report) -> str:
    """The group of a column: scores of answers, reading for them, or its cost, which comes last."""
    if column.measure in report.measures:
        return SCORES
    return COST if column.place >= COST_COLUMNS[0].place else READING
