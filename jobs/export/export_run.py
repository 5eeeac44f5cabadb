"""Exports a method's answers to a file that other systems, benchmarks and `gistmill score` read;
and the table of a run as CSV, or as papers print it, in LaTeX or Markdown: with printed names,
scores before reading and cost, and a caption that explains the numbers."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from jobs.compare.compare import resolve_method
from jobs.config.options import ReadOptions
from jobs.output.print_tables import (
    Measured,
    Table,
    cell,
    counted,
    csv_text,
    json_text,
    on_one_line,
    warn_incomplete,
)
from jobs.report.columns import COST_COLUMNS, COUNTS, PAPER, named, read_names, with_columns
from jobs.report.render import ANSWERED, REPEATED, report_page, score_table
from jobs.report.report import INPUTS, Report, answers, make_report
from pipeline.core.errors import UsageError
from pipeline.core.sql_files import filled, sql_beside, text
from pipeline.store.sql.connection import query

Rows = Sequence[Mapping[str, Any]]
_SQL = sql_beside(__file__)
_HEADINGS = {"method": "Method", "by": "Group"}
_OF_INTERVALS = ("low", "high", "answered_mean", "sd")
_NAMES = {"answered_mean": "answered", "sd": "sd_over_repeats"}  # of these in CSV


def _jsonl(rows: Rows) -> str:
    left_out = ("text", "judged")
    objects = ({key: row[key] for key in row if key not in left_out} for row in rows)
    return "".join(json_text(row) + "\n" for row in objects)


def _scrolls(rows: Rows) -> str:
    """One object of answers by id; the benchmark's own script requires every id."""
    return json_text({row["question_id"]: row["text"] for row in rows}, indent=1) + "\n"


def _longmemeval(rows: Rows) -> str:
    """The hypothesis is the text that raters see: the whole reply if the family says so."""
    return _jsonl([{"question_id": row["question_id"], "hypothesis": row["judged"] or row["text"]}
                   for row in rows])  # fmt: skip


ANSWER_FORMATS: Mapping[str, Callable[[Rows], str]] = {
    "jsonl": _jsonl,
    "scrolls": _scrolls,
    "longmemeval": _longmemeval,
}


def exported_predictions(options: ReadOptions, warn: Callable[[str], None]) -> tuple[str, int]:
    """The answers of `method=` to the questions of `where=`, in `format=`, and their number; `warn`
    gets a line if the run is not complete. In the formats of benchmarks an answer that chooses an
    option is its text. `method=` is resolved as in `compare`; by default it is the run's only
    method. Raises UsageError for several methods, or several repeats of one."""
    form = _format(options.format or "jsonl", ANSWER_FORMATS)
    with options.opened() as (folder, connection):
        run, wanted = folder.path.name, options.method
        methods = [str(row["method"]) for row in query(connection, _SQL["methods"])]
        if not methods:
            raise UsageError(f"run={run} has no answers yet; gistmill status says what is done")
        if wanted is None and len(methods) > 1:
            raise UsageError(f"method= must name one method of the run: {', '.join(methods)}")
        method = resolve_method(methods[0] if wanted is None else wanted, methods, run)
        source = answers(connection, options.where)
        rows = query(connection, filled(_SQL["answers"], source=source, method=text(method)))
        warn_incomplete(run, query(connection, INPUTS)[0], warn)
    if not rows:
        raise UsageError(f"where={options.where}: leaves no answer of {method}")
    if len({row["question_id"] for row in rows}) < len(rows):
        repeats = sorted({row["repeat"] for row in rows})
        raise UsageError(
            f"method={method} has the repeats {', '.join(map(str, repeats))}; choose one with "
            f"where='repeat = {repeats[0]}'"
        )
    return ANSWER_FORMATS[form](rows), len(rows)


def _format(name: str, formats: Collection[str]) -> str:
    if name not in formats:
        raise UsageError(f"format={name}: no such format; there are {', '.join(formats)}")
    return name


def exported_report(
    options: ReadOptions, with_intervals: bool, warn: Callable[[str], None]
) -> tuple[str, int]:
    """The report in `format=`, of the methods whose names begin with `method=`; and the number of
    its rows. `warn` gets a line if the run is not complete. Raises UsageError."""
    form = _format(options.format or "csv", TABLE_FORMATS)
    of_papers = [key for key in ("names", "caption", "label") if getattr(options, key) is not None]
    if of_papers and form == "csv":
        raise UsageError(f"{of_papers[0]}= is for format=latex and markdown; leave it out")
    report = make_report(options)
    warn_incomplete(report.run, report.inputs, warn)
    return TABLE_FORMATS[form](report, options, with_intervals), len(report.rows)


def _csv(report: Report, options: ReadOptions, with_intervals: bool) -> str:
    """A column per measure with all digits, and the number of answers behind each mean; with
    intervals also the intervals, the mean over answered questions and the sd over repeats."""
    counts = [column.measure for column in COUNTS] if options.columns is None else []
    shown = with_columns(report, options.columns)
    has_groups = any(row.by is not None for row in report.rows)
    rows: list[dict[str, Any]] = []
    for row in report.rows:
        group = {"group": row.by} if has_groups else {}
        cells: dict[str, Any] = {"method": row.method, **group, "n": row.counts.get("n")}
        for column in shown.columns:
            name = column.measure
            mean = row.means.get(name)
            cells[name] = mean.mean if mean else row.counts.get(name)
            fields = ("n", *_OF_INTERVALS) if with_intervals and column.has_interval else ("n",)
            cells |= {f"{name}_{_NAMES.get(of, of)}": getattr(mean, of, None) for of in fields}
        rows.append({**cells, **{name: row.counts.get(name) for name in counts}})
    return csv_text(rows, list(rows[0]) if rows else ["method"])


def _latex(report: Report, options: ReadOptions, with_intervals: bool) -> str:
    """A table that needs booktabs, below a comment on where it is from."""
    source = f"gistmill, run {report.run}, corpus {report.foot['corpus']}"
    comment = on_one_line(f"{source}, engine {report.foot['engine']}")
    caption, table = _paper_table(report, options, with_intervals)
    lines = _latex_lines(table, caption, options.label or f"tab:{report.run}")
    return "".join(f"{line}\n" for line in (f"% {comment}", *lines))


def _markdown(report: Report, options: ReadOptions, with_intervals: bool) -> str:
    return report_page(_paper_table(report, options, with_intervals)) + "\n"


def _paper_table(report: Report, options: ReadOptions, with_intervals: bool) -> tuple[str, Table]:
    """The caption and the table that a paper prints, by default with all columns and the cost.
    Raises UsageError."""
    if not report.rows:
        raise UsageError(f"run={report.run} has no methods; gistmill report shows its memories")
    names = read_names(options.names or PAPER, report.foot.get("plugins"))
    shown = named(with_columns(report, options.columns, COST_COLUMNS), names)
    table = score_table(shown, [c.measure for c in shown.columns] if with_intervals else ())
    table = replace(
        table,
        rows=[{_HEADINGS.get(k, k): value for k, value in row.items()} for row in table.rows],
        left=["Group"],
        is_best_bold=True,
    )
    caption = options.caption or " ".join(_caption(table, shown, options, with_intervals))
    return caption, table


def _caption(
    table: Table, report: Report, options: ReadOptions, with_intervals: bool
) -> Iterator[str]:
    means = [value for row in table.rows for value in row.values() if isinstance(value, Measured)]
    corpus = report.foot["corpus"].rpartition(" ")[0]
    documents = counted(report.memory["documents"], "document")
    chosen = f", where {options.where}" if options.where else ""
    chosen += f", by {options.by}" if options.by else ""
    yield f"{corpus}, {_questions(report)} about {documents}{chosen}."
    if not_done := report.inputs["not_done"]:
        yield f"INCOMPLETE: {not_done} of {report.inputs['planned']} inputs are not done."
    yield "Means over all answers; a problem counts 0."
    if any(mean.n != mean.of for mean in means):
        yield "(n=...): over so many answers, those that have such a value."
    if any(mean.answered not in (None, mean.n) for mean in means):
        yield ANSWERED
    if any(mean.is_best for mean in means):
        yield f"Bold: {table.about_best.removeprefix('*: ')}"
    if with_intervals:
        yield "In brackets: 95% interval over documents (cluster bootstrap)."
    if any(" sd " in mean.small for mean in means):
        yield "sd: standard deviation of the repeats' means (n - 1)."


def _questions(report: Report) -> str:
    repeats = report.foot["repeats"]
    numbers: Counter[str] = Counter()  # of questions, by method
    for row in report.rows:
        numbers[row.method] += int(row.counts.get("n") or 0) // repeats
    how = f" ({repeats} repeats, {REPEATED[report.foot['repeat_from']]})" if repeats > 1 else ""
    return f"{counted(max(numbers.values()), 'question')}{how}"


TABLE_FORMATS: Mapping[str, Callable[[Report, ReadOptions, bool], str]] = {
    "csv": _csv,
    "latex": _latex,
    "markdown": _markdown,
}


# As commands, to keep ligatures and babel's shorthands from changing them.
_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\char34{}",
    "`": r"\textasciigrave{}", "'": r"\char39{}", "-": r"{-}", "[": "{[}", "]": "{]}", "*": "{*}",
}  # fmt: skip


def escaped(text: str) -> str:
    return "".join(_SPECIAL.get(sign, sign) for sign in on_one_line(text))


def _latex_lines(table: Table, caption: str, label: str) -> Iterator[str]:
    def line(cells: Iterable[str]) -> str:
        return f"{' & '.join(cells)} \\\\"

    names = table.filled()
    yield r"\begin{table}"
    yield r"\centering\small\setlength{\tabcolsep}{4pt}"
    yield f"\\caption{{{escaped(caption)}}}"
    yield f"\\label{{{label}}}"
    kinds = "".join("l" if table.is_left(name) else "r" for name in names)
    yield f"\\begin{{tabular}}{{@{{}}{kinds}@{{}}}}"
    yield r"\toprule"
    shared = {name: table.shared_n(name) for name in names}
    over = {name: "" if n is None else f" ($n$={n})" for name, n in shared.items()}
    yield line("$n$" if name == "n" else f"{escaped(name)}{over[name]}" for name in names)
    yield r"\midrule"
    for row in table.rows:
        yield line(_cell(row[name], shared[name]) for name in names)
    yield from (r"\bottomrule", r"\end{tabular}", r"\end{table}")


def _cell(value: Any, shared_n: int | None) -> str:
    if not isinstance(value, Measured) or value.value is None:
        shown = cell(value)
        return "--" if shown == "-" else escaped(shown)
    shown = escaped(cell(value.value))
    shown = f"\\textbf{{{shown}}}" if value.is_best else shown
    over = ", ".join(value.is_over(shared_n)).replace("n=", "$n$=")
    shown += f" ({over})" if over else ""
    return f"{shown} {{\\scriptsize{value.small}}}" if value.small else shown
