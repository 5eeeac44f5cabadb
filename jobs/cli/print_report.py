"""The verb that prints the report of a run."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from jobs.cli.app import RUN, Json, WholeTables, reading
from jobs.compare.compare import compare as compare_methods
from jobs.compare.show_compare import comparison_parts
from jobs.config.options import ReadOptions
from jobs.output.cells import Heading, Part
from jobs.output.print_tables import is_fitted, print_found
from jobs.report.columns import with_columns
from jobs.report.memory_sizes import distribution_table, distributions, draw_histograms
from jobs.report.names import CANONICAL, named, read_names
from jobs.report.published import published as published_figures
from jobs.report.published import published_parts
from jobs.report.render import GROUPS, group_parts, headline_parts, parts_of, score_parts
from jobs.report.report import Report, make_report
from pipeline.core.errors import UsageError
from pipeline.store import connect


@reading(*RUN, "by", "where", "rater", "columns", "names", "plugins", "price", "split_shared")
def report(  # noqa: PLR0913  # they are its options
    options: ReadOptions,
    corpus: Annotated[
        bool, typer.Option("--corpus", help="Words, pages and compression instead of scores.")
    ] = False,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --corpus: draw them, .png or .svg.")
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a page of it and every question."),
    ] = None,
    published: Annotated[
        bool, typer.Option("--published", help="The paper's figures beside the run's.")
    ] = False,
    baseline: Annotated[
        str | None, typer.Option(metavar="METHOD", help="Add each row's difference from it, and p.")
    ] = None,
    whole: Annotated[bool, typer.Option("--all", help="In a terminal, too, all of it.")] = False,
    only: Annotated[
        str | None, typer.Option(metavar="PART", help="All of one part: scores, reading or cost.")
    ] = None,
    json: Json = False,
    markdown: WholeTables = False,
) -> None:
    """Print the table of a run: methods, scores, costs.

    In a terminal its headline; into pipes and files, and with --all, all of it.

    \b
    Example:
      gistmill report by=question_type --only scores
    """
    pages = {"published": published, "corpus": corpus or picture, "html": html}
    own = {"baseline": baseline, "all": whole, "only": only}
    _refuse_unused(options, [page for page, is_asked in pages.items() if is_asked], own)
    if published:
        print_found(published_figures(options), published_parts, json, markdown)
    elif corpus or picture:
        with connect(options.warehouse, options.run) as connection:
            found = distributions(connection)
            if picture:
                draw_histograms(connection, picture)
        print_found(found, lambda found: [distribution_table(found)], json, markdown)
    elif html is not None:
        from jobs.html.page_file import show_written  # imported here: it imports the stages

        show_written(options, html, json)
    else:
        is_headline = is_fitted(markdown or whole)
        own_parts = _chosen_parts(only, options.columns, is_headline)
        made, parts = _printed(options, baseline, own_parts)
        print_found(made, lambda _: parts, json, markdown)


def _chosen_parts(
    only: str | None, columns: str | None, is_headline: bool
) -> Callable[[Report], list[Part]]:
    if only is not None:
        if columns is not None or only not in GROUPS:
            raise UsageError(
                f"--only {only}: write --only {', '.join(GROUPS)}, one of them, without columns="
            )
        return partial(group_parts, group=GROUPS[only])
    if not is_headline:
        return partial(parts_of, costs=columns is None)
    return headline_parts if columns is None else score_parts


def _printed(
    options: ReadOptions, baseline: str | None, own_parts: Callable[[Report], list[Part]]
) -> tuple[dict[str, Any], list[Part]]:
    whole = make_report(options)
    names = read_names(options.names or CANONICAL, whole.foot["plugins"])
    chosen = with_columns(whole, options.columns, names)
    parts = own_parts(named(chosen, names))
    if baseline is None:
        return vars(chosen), parts
    against = compare_methods(_of_columns(options, chosen), [baseline], True)
    compared = [Heading("against the baseline", 2), *comparison_parts(against, options.warehouse)]
    return {**vars(chosen), "baseline": against}, [*parts, *compared]


def _of_columns(options: ReadOptions, chosen: Report) -> ReadOptions:
    """By default all measures of answers. Raises UsageError if `columns=` names none."""
    if options.columns is None:
        return options
    named = [column.measure for column in chosen.columns if column.measure in chosen.measures]
    if not named:
        there = ", ".join(chosen.measures)
        raise UsageError(f"columns={options.columns}: --baseline compares scores; add {there}")
    return replace(options, metric=",".join(named))


# The options of the printed report that each other page also takes.
_USED: Mapping[str, Sequence[str]] = {
    "published": ("by", "where", "rater"),
    "corpus": (),
    "html": ("by", "where", "rater", "columns", "names", "plugins"),
    "printed": ("by", "where", "rater", "columns", "names", "price", "split_shared", "baseline",
                "all", "only"),
}  # fmt: skip


def _refuse_unused(options: ReadOptions, pages: Sequence[str], own: Mapping[str, Any]) -> None:
    """Raise UsageError for several `pages`, and for options that would do nothing."""
    if len(pages) > 1:
        raise UsageError(f"--{', --'.join(pages)}: one of them at a time")
    page = pages[0] if pages else "printed"
    given = {name: value for used in _USED.values() for name in used
             if (value := own.get(name) or getattr(options, name, None))}  # fmt: skip
    if unused := [name.replace("_", "-") for name in given if name not in _USED[page]]:
        where = f"with --{page}" if pages else "without --html"
        raise UsageError(f"{', '.join(unused)}: does nothing {where}; leave it out")
    if own["baseline"] and options.names:
        raise UsageError("--baseline prints the names that compare takes; leave names= out")
