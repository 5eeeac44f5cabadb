"""What `gistmill report` prints: the report, one of its parts, or another page of the run."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from jobs.compare.compare import compare as compare_methods
from jobs.compare.show_compare import comparison_parts
from jobs.config.options import REPORT, ReadOptions
from jobs.output.cells import Heading, Part
from jobs.output.print_tables import is_fitted, print_found
from jobs.report.columns import CANONICAL, named, read_names, with_columns
from jobs.report.published import published as published_figures
from jobs.report.published import published_parts
from jobs.report.render import (
    GROUPS,
    distribution_table,
    group_parts,
    headline_parts,
    parts_of,
    score_parts,
)
from jobs.report.report import Report, distributions, make_report
from pipeline.core.errors import UsageError
from pipeline.store import connect

_USED: Mapping[str, Sequence[str]] = {
    "--published": ("by", "where", "rater"),
    "--corpus": (),
    "html=": ("by", "where", "rater", "columns", "names", "plugins"),
    "": tuple(key for key in REPORT if key != "plugins"),
}
"""The keys that each page takes, and the printed report, whose page is ""."""


def show_report(
    options: ReadOptions, corpus: bool, published: bool, whole: bool, json: bool, markdown: bool
) -> None:
    """Print the report, or the page that --corpus, --published or html= names. Raises UsageError
    for options that would do nothing."""
    page = _page(options, published, corpus, whole)
    if page == "--published":
        print_found(published_figures(options), published_parts, json, markdown)
    elif page == "--corpus":
        with connect(options.warehouse, options.run) as connection:
            sizes = distributions(connection)
        print_found(sizes, lambda sizes: [distribution_table(sizes)], json, markdown)
    elif options.html:
        from jobs.html.source import show_written  # imported here: it imports the stages

        show_written(options, Path(options.html), json)
    else:
        chosen_parts = _chosen_parts(options.only, options.columns, is_fitted(markdown or whole))
        printed, parts = _printed(options, chosen_parts)
        print_found(printed, lambda _: parts, json, markdown)


def _page(options: ReadOptions, published: bool, corpus: bool, whole: bool) -> str:
    """The key of `_USED` that is asked for. Raises UsageError for several, and for options that
    would do nothing."""
    wanted = {
        "--published": published,
        "--corpus": corpus,
        "html=": options.html,
    }
    pages = [page for page, is_wanted in wanted.items() if is_wanted]
    if len(pages) > 1:
        raise UsageError(f"{', '.join(pages)}: one of them at a time")
    page = pages[0] if pages else ""
    keys = dict.fromkeys(key for keys in _USED.values() for key in keys)
    unused = [key for key in keys if key not in _USED[page] and getattr(options, key)]
    switches = {"--split-shared": options.split_shared, "--all": whole}
    unused += [switch for switch, is_on in switches.items() if is_on and page]
    if unused:
        raise UsageError(
            f"{', '.join(unused)}: does nothing with {page or 'a table'}; leave it out"
        )
    if options.baseline and options.names:
        raise UsageError("baseline= prints the names that compare takes; leave names= out")
    return page


def _chosen_parts(
    only: str | None, columns: str | None, is_headline: bool
) -> Callable[[Report], list[Part]]:
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
    options: ReadOptions, parts_of_it: Callable[[Report], list[Part]]
) -> tuple[dict[str, Any], list[Part]]:
    whole = make_report(options)
    names = read_names(options.names or CANONICAL, whole.foot["plugins"])
    chosen = with_columns(whole, options.columns, names)
    parts = parts_of_it(named(chosen, names))
    if options.baseline is None:
        return vars(chosen), parts
    against = compare_methods(_of_columns(options, chosen), [options.baseline], True)
    compared = [Heading("against the baseline", 2), *comparison_parts(against, options.warehouse)]
    return {**vars(chosen), "baseline": against}, [*parts, *compared]


def _of_columns(options: ReadOptions, chosen: Report) -> ReadOptions:
    """By default all measures of answers. Raises UsageError if `columns=` names none."""
    if options.columns is None:
        return options
    named = [column.measure for column in chosen.columns if column.measure in chosen.measures]
    if not named:
        there = ", ".join(chosen.measures)
        raise UsageError(f"columns={options.columns}: baseline= compares scores; add {there}")
    return replace(options, metric=",".join(named))
