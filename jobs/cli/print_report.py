"""The verb that prints the report of a run."""

from collections.abc import Callable, Mapping
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
from jobs.report.headline import GROUPS, group_parts, headline_parts
from jobs.report.memory_sizes import distribution_table, distributions, draw_histograms
from jobs.report.names import CANONICAL, named, read_names
from jobs.report.published import published as published_figures
from jobs.report.published import published_parts
from jobs.report.render import parts_of, score_parts
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
    is_other = bool(corpus or picture or html or published)
    _refuse_together(options, bool(corpus or picture), html is not None, published)
    _refuse_unprinted(options, {"baseline": baseline, "all": whole, "only": only}, is_other)
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
        own_parts = _chosen_parts(only, options.columns, is_headline, baseline)
        made, parts = _printed(options, baseline, own_parts)
        print_found(made, lambda _: parts, json, markdown)


def _chosen_parts(
    only: str | None, columns: str | None, is_headline: bool, baseline: str | None
) -> Callable[[Report], list[Part]]:
    """The function that makes a report's printed parts. Raises UsageError for an unknown one."""
    if only is not None:
        if columns is not None or only not in GROUPS:
            raise UsageError(
                f"--only {only}: write --only {', '.join(GROUPS)}, one of them, without columns="
            )
        return partial(group_parts, group=GROUPS[only])
    if not is_headline:
        return partial(parts_of, costs=columns is None)
    return partial(headline_parts, baseline=baseline) if columns is None else score_parts


def _printed(
    options: ReadOptions, baseline: str | None, own_parts: Callable[[Report], list[Part]]
) -> tuple[dict[str, Any], list[Part]]:
    """The content of the printed report, and its parts."""
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
    """The options of a comparison by those measures of answers that `columns=` names, by default
    all. Raises UsageError where it names none."""
    if options.columns is None:
        return options
    named = [column.measure for column in chosen.columns if column.measure in chosen.measures]
    if not named:
        there = ", ".join(chosen.measures)
        raise UsageError(f"columns={options.columns}: --baseline compares scores; add {there}")
    return replace(options, metric=",".join(named))


def _refuse_unprinted(options: ReadOptions, own: Mapping[str, Any], is_other: bool) -> None:
    """Raise UsageError for options of the printed report (`own`, and of reading verbs), if it
    `is_other`, and for names that it would not print."""
    if own["baseline"] and options.names:
        raise UsageError("--baseline prints the names that compare takes; leave names= out")
    given = {**own, "price": options.price, "split-shared": options.split_shared}
    names = [f"--{name}" for name, value in given.items() if value]
    if is_other and names:
        raise UsageError(
            f"{', '.join(names)}: of the printed report; leave --corpus, --picture, --html and "
            "--published out"
        )


def _refuse_together(options: ReadOptions, corpus: bool, html: bool, published: bool) -> None:
    """Raise UsageError for options of `report` of which one would do nothing."""
    if published and (corpus or html or options.columns or options.names):
        raise UsageError(
            "--published stands alone; leave --corpus, --picture, --html, columns= and names= out"
        )
    if options.plugins and not html:
        raise UsageError(
            "plugins= is for --html, which shows the rows of their tables; leave it out"
        )
    if corpus and html:
        raise UsageError("--html has what --corpus shows; leave --corpus and --picture out")
    of_methods = ("by", "where", "rater", "columns", "names")
    if corpus and any(getattr(options, key) for key in of_methods):
        raise UsageError(
            f"--corpus is about all documents; leave {', '.join(f'{k}=' for k in of_methods)} out"
        )
