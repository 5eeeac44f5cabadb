"""Verbs that write a run's contents to files for other programs."""

from collections.abc import Callable
from contextlib import nullcontext

from upath import UPath

from jobs.cli.app import LOOK, RUN, Force, app, reading, switch, verb_group, warn
from jobs.config.options import ReadOptions
from jobs.output.print_tables import STANDARD_OUTPUT, counted, print_exact, print_found, print_json
from pipeline.core.errors import UsageError
from pipeline.files.storage import (
    as_path,
    is_remote,
    path_kind,
    refuse_unreachable_path,
    unwritable,
    write,
)

export = verb_group(help="Write answers or the report to a file.")
app.add_typer(export, name="export", rich_help_panel=LOOK)


@reading(*RUN, "method", "where", "format", "to", of=export)
def predictions(options: ReadOptions, force: Force = False) -> None:
    """Write the answers of a method.

    format=jsonl, scrolls or longmemeval.

    Example: gistmill export predictions method=gist_only to=answers.jsonl
    """
    from jobs.export.export_run import exported_predictions

    give(options, force, lambda: exported_predictions(options, warn))


@reading(
    *RUN, "method", "where", "format", "to", "by", "rater", "columns", "names", "caption", "label",
    of=export,
)  # fmt: skip
def report(
    options: ReadOptions,
    intervals: bool = switch("--intervals", "With 95% intervals over documents."),
    force: Force = False,
) -> None:
    """Write the table of a run.

    format=csv, latex or markdown.

    Example: gistmill export report format=latex to=table.tex
    """
    from jobs.export.export_run import exported_report

    give(options, force, lambda: exported_report(options, intervals, warn))


@reading(*RUN, "metric", "where", "to", "by", "rater", of=export)
def frontier(options: ReadOptions, force: Force = False) -> None:
    """Write score against tokens read, with the Pareto frontier.

    to=FILE.svg: the picture; .csv, .json: its points. metric= is one of the report's scores,
    the first by default.

    Example: gistmill export frontier to=frontier.svg
    """
    from jobs.export.frontier import exported_frontier

    give(options, force, lambda: exported_frontier(options, warn))


@reading(*RUN, "names")
def cite(options: ReadOptions) -> None:
    """Print what a paper must state of a run, with BibTeX.

    Example: gistmill cite run=night
    """
    from jobs.cite.cite import cite_parts, statement

    print_found(statement(options), cite_parts, options.as_json)


def give(options: ReadOptions, is_forced: bool, make: Callable[[], tuple[str, int]]) -> None:
    """Write the text that `make` returns with its number of rows, to `to=`. With --json and no
    file, it goes into the JSON. Raises UsageError, before the text is made for a folder, an
    unwritable place, and an existing file without --force; and StorageError."""
    path = None if options.to == STANDARD_OUTPUT else _target(options.to, is_forced)
    text, num_rows = make()
    if path is None and options.as_json:
        print_json({"to": None, "rows": num_rows, "text": text})
    elif path is None:
        print_exact(text)
    else:
        with refuse_unreachable_path(path, "to") if is_remote(path) else nullcontext():
            write(path, text.encode())
        written = {"to": str(path), "rows": num_rows}
        line = f"{counted(num_rows, 'row')} in {path}"
        print_found(written, lambda _: [line], options.as_json)


def _target(to: str, is_forced: bool) -> UPath:
    path = as_path(to)
    with refuse_unreachable_path(path, "to"):
        there = path_kind(path)
    if there not in (None, "file"):
        raise UsageError(f"to={to}: no file but a folder or a device; name a file")
    if there and not is_forced:
        raise UsageError(f"to={to}: exists already; name another file, or add --force")
    if blocking := unwritable(path.parent):
        raise UsageError(f"to={to}: {blocking} is not a writable folder; name another")
    return path
