"""What `gistmill report` prints: the report, one of its parts, or another page of the run."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from jobs.cli.app import chosen
from jobs.compare.compare import compare as compare_methods
from jobs.compare.show_compare import comparison_parts
from jobs.config.options import REPORT, ReadOptions
from jobs.output.print_tables import Heading, Part, print_found
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
from jobs.report.report import distributions, make_report
from pipeline.core.errors import UsageError
from pipeline.store import connect

_TAKEN: Mapping[str, Sequence[str]] = {
    "--published": ("by", "where", "rater"),
    "--corpus": (),
    "html=": ("by", "where", "rater", "columns", "names", "plugins"),
    "": tuple(key for key in (*REPORT, "split_shared") if key != "plugins"),
}
"""What each page takes; the printed report is the page ""."""


def show_report(options: ReadOptions, corpus: bool, published: bool, whole: bool) -> None:
    """Print the report, or the page that --corpus, --published or html= names. Raises UsageError
    for several pages, and for options that would do nothing."""
    page = chosen({"--published": published, "--corpus": corpus, "html=": options.html})
    unused = [key for key in (*REPORT, "split_shared")
              if key not in _TAKEN[page] and getattr(options, key)]  # fmt: skip
    if unused:
        raise UsageError(
            f"{', '.join(unused)}: does nothing with {page or 'a table'}; leave it out"
        )
    if page == "--published":
        print_found(published_figures(options), published_parts, options.as_json)
    elif page == "--corpus":
        with connect(options.warehouse, options.run) as connection:
            sizes = distributions(connection)
        print_found(sizes, lambda sizes: [distribution_table(sizes)], options.as_json)
    elif options.html:
        # Imported here, as it imports the stages.
        from jobs.html.run_page import write_page, written_lines

        print_found(write_page(options, Path(options.html)), written_lines, options.as_json)
    else:
        printed, parts = _printed(options, sys.stdout.isatty() and not whole)
        print_found(printed, lambda _: parts, options.as_json)


def _printed(options: ReadOptions, is_headline: bool) -> tuple[dict[str, Any], list[Part]]:
    """The report as JSON has it, and its parts. With `baseline=`, the scores in `columns=` are
    compared, by default all."""
    only, columns, baseline = options.only, options.columns, options.baseline
    if only is not None and (columns is not None or only not in GROUPS):
        raise UsageError(
            f"only={only}: write only={', '.join(GROUPS)}, one of them, without columns="
        )
    whole = make_report(options)
    names = read_names(options.names or CANONICAL, whole.foot["plugins"])
    report = with_columns(whole, columns)
    shown = named(report, names)
    if only is not None:
        parts = group_parts(shown, GROUPS[only])
    elif not is_headline:
        parts = parts_of(shown, costs=columns is None)
    else:
        parts = headline_parts(shown) if columns is None else score_parts(shown)
    if baseline is None:
        return vars(report), parts
    if columns is not None:
        measures = [c.measure for c in report.columns if c.measure in report.measures]
        options = replace(options, metric=",".join(measures) or None)
    against = compare_methods(options, [baseline], True)
    compared = [Heading("against the baseline", 2), *comparison_parts(against)]
    return {**vars(report), "baseline": against}, [*parts, *compared]
