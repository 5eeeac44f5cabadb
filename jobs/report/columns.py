"""The columns of the table of methods, means of measures and counts: their groups, and the choice
by `columns=`; and names as papers print them, from conf/names.yaml, plugins and a user's file. A
method is printed with only the arguments in which it differs from the table's other methods."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated

import yaml
from pydantic import BeforeValidator, Field, ValidationError

from jobs.report.report import Report
from pipeline.core.errors import UsageError
from pipeline.core.registry import found_conf_folders
from pipeline.core.settings import YAML_LOADER, Settings
from pipeline.files.storage import as_path, refuse_unreachable_path
from pipeline.work.stage import Column

CANONICAL, PAPER = "canonical", "paper"
_METHOD = re.compile(r"([A-Za-z]\w*)(?:\((.*)\))?(?:\[(.*)\])?", re.DOTALL)
_KEYS = ("n", "method", "Method", "by", "Group")  # other columns of tables
_Section = Annotated[Mapping[str, str], BeforeValidator(lambda section: section or {})]


class Names(Settings):
    """Printed names by canonical name."""

    measures: _Section = Field(default_factory=dict)
    methods: _Section = Field(default_factory=dict)
    memories: _Section = Field(default_factory=dict)
    corpora: _Section = Field(default_factory=dict)

    def of_columns(self, columns: Sequence[Column]) -> tuple[Column, ...]:
        """Equal printed headings get the measure's name in brackets."""
        headings = [self.measures.get(column.measure, column.heading) for column in columns]
        number = Counter([*headings, *_KEYS])
        return tuple(
            replace(c, heading=text if number[text] == 1 else f"{text} ({c.measure})")
            for c, text in zip(columns, headings, strict=True)
        )

    def of_methods(self, names: Sequence[str]) -> dict[str, str]:
        """The printed names of a table's methods, all different: with the arguments in which
        methods of one name differ; with all arguments if two would still be equal; else the
        canonical name."""
        arguments = {name: _arguments(name) for name in dict.fromkeys(names)}
        printed = {name: self._method(name, arguments) for name in arguments}
        for fuller in (lambda name: self._with(name, arguments[name]), str):
            number = Counter(printed.values())
            printed |= {name: fuller(name) for name, text in printed.items() if number[text] > 1}
        return printed

    def _method(self, name: str, arguments: Mapping[str, Mapping[str, str]]) -> str:
        variants = [of for other, of in arguments.items() if _base(other) == _base(name)]
        differ = {
            key: value
            for key, value in arguments[name].items()
            if any(of.get(key) != value for of in variants)
        }
        return self.methods.get(name) or self._with(name, differ)

    def _with(self, name: str, arguments: Mapping[str, str]) -> str:
        base = self.methods.get(_base(name), _base(name))
        printed = ", ".join(f"{key}={value}" for key, value in arguments.items())
        return f"{base} ({printed})" if printed else base


def _base(name: str) -> str:
    """The name without its arguments; the whole name if it is not in our syntax."""
    match = _METHOD.fullmatch(name)
    return match[1] if match and _arguments(name) else name


def _arguments(name: str) -> dict[str, str]:
    """The arguments of a canonical name, then the settings in its square brackets."""
    match = _METHOD.fullmatch(name)
    groups = match.groups()[1:] if match else ()
    pairs = [part.partition("=")[::2] for group in groups if group for part in group.split(",")]
    return dict(pairs) if all(value for _, value in pairs) else {}


def read_names(wanted: str, plugins: str | None = None) -> Names | None:
    """The names for `names=`, of our `conf` and the run's `plugins` unless a file's own go before
    them; None for `canonical`. Raises UsageError for an unusable file."""
    if wanted == CANONICAL:
        return None
    files = [conf / "names.yaml" for conf in reversed(found_conf_folders(plugins))]
    paths = [str(file) for file in files if file.is_file()] + [wanted] * (wanted != PAPER)
    merged: dict[str, dict[str, str]] = {section: {} for section in Names.model_fields}
    for names in map(_read, paths):
        for section, by_name in merged.items():
            by_name.update(getattr(names, section))
    return Names(**merged)


def _read(path: str) -> Names:
    place = as_path(path)
    try:
        with refuse_unreachable_path(place, "names"):
            text = place.read_bytes()
    except UsageError as error:
        raise UsageError(f"{error}; names= is {PAPER}, {CANONICAL} or a YAML file") from None
    try:
        return Names.model_validate(yaml.load(text, YAML_LOADER) or {})
    except yaml.YAMLError as error:
        why = f"not YAML: {' '.join(str(error).split())}"
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"]) or "the file"
        why = f"{key}: {first['msg']}; it has names by name under {', '.join(Names.model_fields)}"
    raise UsageError(f"names={path}: {why}")


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


def with_columns(
    report: Report, wanted: str | None, names: Names | None, more: Sequence[Column] = ()
) -> Report:
    """The report with the columns that `columns=` names, in its order; None: all columns of the
    run, and `more`. A name is that of a measure or count, or a heading, also as `names` print it.
    Raises UsageError for a column that the run has not."""
    if wanted is None:
        return replace(report, columns=(*report.columns, *more))
    known = known_columns(report)
    by_name = measures_by_name(known, names)
    parts = [part.strip() for part in wanted.split(",") if part.strip()]
    if unknown := [part for part in parts if part.lower() not in (*by_name, "n")]:
        there = ", ".join(
            c.measure if c.measure == c.heading else f"{c.measure} ({c.heading})" for c in known
        )
        raise UsageError(f"columns={unknown[0]}: no such column; the run has {there}")
    chosen = dict.fromkeys(by_name[part.lower()] for part in parts if part.lower() in by_name)
    if not chosen:
        raise UsageError(f"columns={wanted}: names no column beside n")
    return replace(report, columns=tuple(c for name in chosen for c in known if c.measure == name))


def known_columns(report: Report) -> list[Column]:
    """The report's columns, and all counts of its methods."""
    known = {column.measure: column for column in (*report.columns, *COUNTS)}
    for name in (name for row in report.rows for name in row.counts if name != "n"):
        known.setdefault(name, _count(name, name.replace("_", " "), 200))
    return list(known.values())


def measures_by_name(known: Sequence[Column], names: Names | None) -> Mapping[str, str]:
    """By lower-case name, heading and printed heading; an earlier one of these wins."""
    printed = names.of_columns(known) if names else known
    texts = [[c.measure for c in known], [c.heading for c in known], [c.heading for c in printed]]
    by_name: dict[str, str] = {}
    for shown in texts:
        for text, column in zip(shown, known, strict=True):
            by_name.setdefault(text.lower(), column.measure)
    return by_name


def group_of(column: Column, report: Report) -> str:
    """The group of a column: scores of answers, reading for them, or its cost, which comes last."""
    if column.measure in report.measures:
        return SCORES
    return COST if column.place >= COST_COLUMNS[0].place else READING
