"""What `gistmill report` prints: the report, one of its parts, or another page of the run."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from jobs.cli.app import chosen
from jobs.compare.compare import compare as compare_methods
from jobs.compare.show_compare import comparison_parts
from jobs.config.options import REPORT, ReadOptions
from jobs.output.print_tables import Heading, Part, is_fitted, print_found
from jobs.report.columns import CANONICAL, named, read_names, with_columns
from jobs.report.render import (
    GROUPS,
    distribution_table,
    group_parts,
    headline_parts,
    parts_of,
    published_parts,
    score_parts,
)
from jobs.report.render import published as published_figures
from jobs.report.report import Report, distributions, make_report
from pipeline.core.errors import UsageError
from pipeline.store import connect

_TAKEN: Mapping[str, Sequence[str]] = {
    "--published": ("by", "where", "rater"),
    "--corpus": (),
    "html=": ("by", "where", "rater", "columns", "names", "plugins"),
    "": tuple(key for key in REPORT if key != "plugins"),
}
"""The keys that each page takes; the printed report is the page ""."""


def show_report(
    options: ReadOptions, corpus: bool, published: bool, whole: bool, json: bool, markdown: bool
) -> None:
    """Print the report, or the page that --corpus, --published or html= names. Raises UsageError
    for several pages, and for options that would do nothing."""
    page = chosen({"--published": published, "--corpus": corpus, "html=": options.html})
    unused = [key for key in REPORT if key not in _TAKEN[page] and getattr(options, key)]
    switches = {"--split-shared": options.split_shared, "--all": whole}
    unused += [switch for switch, is_on in switches.items() if is_on and page]
    if unused:
        raise UsageError(
            f"{', '.join(unused)}: does nothing with {page or 'a table'}; leave it out"
        )
    if page == "--published":
        print_found(published_figures(options), published_parts, json, markdown)
    elif page == "--corpus":
        with connect(options.warehouse, options.run) as connection:
            sizes = distributions(connection)
        print_found(sizes, lambda sizes: [distribution_table(sizes)], json, markdown)
    elif options.html:
        from jobs.html.run_page import show_written  # imported here: it imports the stages

        show_written(options, Path(options.html), json)
    else:
        parts_of_report = _parts_of_report(options, is_fitted(markdown or whole))
        printed, parts = _printed(options, parts_of_report)
        print_found(printed, lambda _: parts, json, markdown)


def _parts_of_report(options: ReadOptions, is_headline: bool) -> Callable[[Report], list[Part]]:
    only, columns = options.only, options.columns
    if options.baseline and options.names:
        raise UsageError("baseline= prints the names that compare takes; leave names= out")
    if only is not None:
        if columns is not None or only not in GROUPS:
            raise UsageError(
                f"only={only}: write only={', '.join(GROUPS)}, one of them, without columns="
            )
        return partial(group_parts, group=GROUPS[only])
    if not is_headline:
        return partial(parts_of, costs=columns is None)
    return headline_parts if columns is None else score_parts


def _printed(
    options: ReadOptions, parts_of_report: Callable[[Report], list[Part]]
) -> tuple[dict[str, Any], list[Part]]:
    """The report as JSON has it, and its parts. With `baseline=`, the measures of `columns=` are
    compared, by default all; raises UsageError if there are none."""
    whole = make_report(options)
    names = read_names(options.names or CANONICAL, whole.foot["plugins"])
    report = with_columns(whole, options.columns, names)
    parts = parts_of_report(named(report, names))
    baseline = options.baseline
    if baseline is None:
        return vars(report), parts
    if options.columns is not None:
        measures = [c.measure for c in report.columns if c.measure in report.measures]
        if not measures:
            there = ", ".join(report.measures)
            why = f"baseline= compares scores; add {there}"
            raise UsageError(f"columns={options.columns}: {why}")
        options = replace(options, metric=",".join(measures))
    against = compare_methods(options, [baseline], True)
    compared = [Heading("against the baseline", 2), *comparison_parts(against)]
    return {**vars(report), "baseline": against}, [*parts, *compared]
