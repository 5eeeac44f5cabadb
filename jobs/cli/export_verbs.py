"""Verbs that write a run's contents to files for other programs."""

from collections.abc import Callable

from jobs.cli.app import LOOK, RUN, Force, Json, app, reading, switch, verb_group, warn
from jobs.config.options import ReadOptions
from jobs.output.print_tables import Target, counted, print_found, print_json

export = verb_group(help="Write answers or the report to a file.")
app.add_typer(export, name="export", rich_help_panel=LOOK)


@reading(*RUN, "method", "where", "format", "to", of=export)
def predictions(options: ReadOptions, force: Force = False, json: Json = False) -> None:
    """Write the answers of a method.

    format=jsonl, scrolls or longmemeval.

    Example: gistmill export predictions method=gist_only to=answers.jsonl
    """
    from jobs.export.export_run import exported_predictions

    give(options.to, force, json, lambda: exported_predictions(options, warn))


@reading(
    *RUN, "method", "where", "format", "to", "by", "rater", "columns", "names", "caption", "label",
    of=export,
)  # fmt: skip
def report(
    options: ReadOptions,
    intervals: bool = switch("--intervals", "With 95% intervals over documents."),
    force: Force = False,
    json: Json = False,
) -> None:
    """Write the table of a run.

    format=csv, latex or markdown.

    Example: gistmill export report format=latex to=table.tex
    """
    from jobs.export.export_run import exported_report

    give(options.to, force, json, lambda: exported_report(options, intervals, warn))


@reading(*RUN, "metric", "where", "to", "by", "rater", of=export)
def frontier(options: ReadOptions, force: Force = False, json: Json = False) -> None:
    """Write score against tokens read, with the Pareto frontier.

    to=FILE.svg: the picture; .csv, .json: its points. metric= is one of the report's scores,
    the first by default.

    Example: gistmill export frontier to=frontier.svg
    """
    from jobs.export.frontier import exported_frontier

    give(options.to, force, json, lambda: exported_frontier(options, warn))


@reading(*RUN, "names")
def cite(options: ReadOptions, json: Json = False) -> None:
    """Print what a paper must state of a run, with BibTeX.

    Example: gistmill cite run=night
    """
    from jobs.cite.cite import cite_parts, statement

    print_found(statement(options), cite_parts, json)


def give(to: str, is_forced: bool, as_json: bool, make: Callable[[], tuple[str, int]]) -> None:
    """Write the text that `make` returns with its number of rows. The target is checked before the
    text is made. With `as_json` and no file, the text goes into the JSON."""
    target = Target.of(to, is_forced)
    text, num_rows = make()
    if target.path is None and as_json:
        print_json({"to": None, "rows": num_rows, "text": text})
        return
    target.write(text)
    if target.path is not None:
        written = {"to": str(target.path), "rows": num_rows}
        print_found(written, lambda _: [f"{counted(num_rows, 'row')} in {target.path}"], as_json)
