"""The report's table in LaTeX (booktabs): every special character escaped, the best value bold."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from jobs.output.cells import printable
from jobs.report.means import Mean
from jobs.report.render import REPEATED
from jobs.report.report import Report, Row
from pipeline.work.stage import Column

# As commands, so that neither ligatures nor the shorthands of babel's languages change them.
_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\char34{}",
    "`": r"\textasciigrave{}", "'": r"\char39{}", "-": r"{-}", "[": "{[}", "]": "{]}", "*": "{*}",
}  # fmt: skip
_HEAD = """\
% gistmill, run {run}, corpus {corpus}, engine {engine}
% Means over all $n$ answers, a problem counts 0; ($n$=...): over so many of them.
% Bold: the best of the rows over the most answers, where more is better.
% Needs \\usepackage{{booktabs}}.
"""
_INCOMPLETE = "% INCOMPLETE: {not_done} of {planned} inputs are not done.\n"
_OF_REPEATS = "% $n$ counts {} repeats of every question; {}.\n"
_OF_INTERVALS = "% In brackets: 95% interval over documents (cluster bootstrap).\n"
_OF_SD = "% sd: standard deviation of the repeats' means (n - 1).\n"


def escaped(text: str) -> str:
    """The text as LaTeX prints it, on one line."""
    return "".join(_SPECIAL.get(sign, sign) for sign in _on_one_line(text))


def latex(report: Report, with_intervals: bool) -> str:
    """A tabular with a row per method and group. Columns without any value are left out."""
    columns = [_Cells(report, column, with_intervals) for column in report.columns]
    columns = [cells for cells in columns if any(map(cells.value, report.rows))]
    with_groups = any(row.by is not None for row in report.rows)
    groups = ["Group"] if with_groups else []
    lines = [["Method", *groups, "$n$", *(cells.head() for cells in columns)]]
    for row in report.rows:
        group = ["--" if row.by is None else escaped(row.by)] if with_groups else []
        cells = [cells.of(row) for cells in columns]
        lines.append([escaped(row.method), *group, str(row.counts.get("n", 0)), *cells])
    head, *body = (f"{' & '.join(line)} \\\\\n" for line in lines)
    facts = {key: _on_one_line(str(report.foot[key])) for key in ("corpus", "engine")}
    return (
        _HEAD.format(run=report.run, **facts)
        + "".join(_notes(report, with_intervals))
        + f"\\begin{{tabular}}{{{'l' * (1 + with_groups)}{'r' * (1 + len(columns))}}}\n"
        + f"\\toprule\n{head}\\midrule\n{''.join(body)}\\bottomrule\n\\end{{tabular}}\n"
    )


def _notes(report: Report, with_intervals: bool) -> Iterator[str]:
    """LaTeX comments that state what the numbers are over."""
    repeats = report.foot["repeats"]
    if report.inputs["not_done"]:
        yield _INCOMPLETE.format(**report.inputs)
    if repeats > 1:
        yield _OF_REPEATS.format(repeats, REPEATED[report.foot["repeat_from"]])
    if with_intervals:
        yield _OF_INTERVALS
    if with_intervals and repeats > 1:
        yield _OF_SD


def _on_one_line(text: str) -> str:
    return printable(" ".join(text.split()))


@dataclass(frozen=True)
class _Cells:
    """The cells of one column."""

    report: Report
    column: Column
    with_intervals: bool

    def value(self, row: Row) -> str | None:
        """The mean as printed, or the count for the method in its place."""
        mean = self.mean(row)
        value = mean.mean if mean else row.counts.get(self.column.measure)
        return None if value is None else f"{value:.1f}"

    def mean(self, row: Row) -> Mean | None:
        return row.means.get(self.column.measure)

    def head(self) -> str:
        return escaped(self.column.heading) + self._over(self._same_n)

    def of(self, row: Row) -> str:
        value, mean = self.value(row), self.mean(row)
        if value is None or mean is None:
            return value or "--"
        cell = f"\\textbf{{{value}}}" if self.column.measure in row.best else value
        if mean.n not in (row.counts.get("n"), self._same_n):
            cell += self._over(mean.n)
        if self.with_intervals and self.column.has_interval:
            limits = "n/a" if mean.low is None else f"{mean.low:.1f}, {mean.high:.1f}"
            sd = "" if mean.sd is None else f" sd {mean.sd:.2f}"
            cell += f" {{\\scriptsize[{limits}]{sd}}}"
        return cell

    def _over(self, n: int | None) -> str:
        return "" if n is None else f" ($n$={n})"

    @cached_property
    def _same_n(self) -> int | None:
        """The number of answers that all means are over, if it is one number and not that of the
        column n."""
        own = {
            (mean.n, row.counts.get("n")) for row in self.report.rows if (mean := self.mean(row))
        }
        numbers = {n for n, _ in own}
        return numbers.pop() if len(numbers) == 1 and any(n != of for n, of in own) else None
