"""Verbs that write a run's contents to files of other programs."""

from typing import Annotated

import typer

from jobs.cli.app import LOOK, Json, Words, app, warn
from jobs.config.options import KEYS, read_options
from jobs.export.export_predictions import exported_predictions as predictions_text
from jobs.export.export_report import exported_report
from jobs.export.target import Target
from jobs.output.cells import counted
from jobs.output.print_tables import print_json, print_line
from jobs.report.cite import statement
from jobs.report.show_cite import cite_text
from pipeline.core.errors import UsageError
from pipeline.core.registry import nearest
from pipeline.store import connect
from pipeline.store.sql.view_files import view_names, write_view

export = typer.Typer(help="Write answers, the report or a view to a file.")
app.add_typer(export, name="export", rich_help_panel=LOOK)

Force = Annotated[bool, typer.Option("--force", help="Replace a file that exists.")]


@export.command()
def predictions(words: Words = None, force: Force = False, json: Json = False) -> None:
    """Write the answers of a method.

    Keys: method=, format=jsonl|scrolls|longmemeval, to=FILE (- prints), warehouse=, run=, where=SQL
    over questions.
    """
    options = read_options(words or [], KEYS["export predictions"])
    target = Target.of(options.to, force)
    give(target, *predictions_text(options, warn), json)


@export.command()
def report(
    words: Words = None,
    intervals: Annotated[
        bool, typer.Option("--intervals", help="With 95% intervals over documents.")
    ] = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Write the table of a run.

    Keys: format=csv|latex, to=FILE (- prints), warehouse=, run=, by=SQL, where=SQL, method=PREFIX,
    rater=.
    """
    options = read_options(words or [], KEYS["export report"])
    target = Target.of(options.to, force)
    give(target, *exported_report(options, intervals, warn), json)


@export.command()
def view(name: str, words: Words = None, force: Force = False, json: Json = False) -> None:
    """Write the rows of a view as Parquet.

    Keys: to=FILE, on any filesystem, warehouse=, run=, where=SQL over the view's columns. all_VIEW
    has every run.
    """
    options = read_options(words or [], KEYS["export view"])
    target = Target.of(options.to, force)
    if target.path is None:
        raise UsageError("a view is written as Parquet, which is no text; add to=FILE.parquet")
    with connect(options.warehouse, options.run) as connection:
        names = view_names(connection)
        if name not in names:
            raise UsageError(f"{name}: no such view; nearest: {nearest(name, sorted(names), 5)}")
        num_rows = write_view(connection, name, options.where, target.path)
    _say(target, num_rows, json)


@app.command(rich_help_panel=LOOK)
def cite(words: Words = None, json: Json = False) -> None:
    """Print what a paper must state of a run, with BibTeX.

    Keys: warehouse=, run=.
    """
    found = statement(read_options(words or [], KEYS["cite"]))
    if json:
        print_json(found)
    else:
        print_line(cite_text(found))


def give(target: Target, text: str, num_rows: int, as_json: bool) -> None:
    """Write a text to its target; with `as_json`, text for standard output goes into the JSON."""
    if target.path is None and as_json:
        print_json({"to": None, "rows": num_rows, "text": text})
        return
    target.write(text)
    if target.path is not None:
        _say(target, num_rows, as_json)


def _say(target: Target, num_rows: int, as_json: bool) -> None:
    if as_json:
        print_json({"to": str(target.path), "rows": num_rows})
    else:
        print_line(f"{counted(num_rows, 'row')} in {target.path}")
