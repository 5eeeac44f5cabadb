"""Verbs that read a warehouse, and those that maintain it."""

import dataclasses
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from jobs.cli.app import KEEP, LOOK, Json, WholeTables, Words, app
from jobs.compare.compare import compare as compare_methods
from jobs.compare.show_compare import show_comparison
from jobs.config.completion import completed
from jobs.config.options import KEYS, ReadOptions, read_options
from jobs.output.cells import counted
from jobs.output.print_tables import print_json, print_line, print_parts, print_rows, print_table
from jobs.report.memory_sizes import distribution_table, distributions, draw_histograms
from jobs.report.render import printed_parts
from jobs.report.report import make_report
from jobs.trace.show_pages import show_pages
from jobs.trace.show_trace import show_trace
from jobs.warehouse.gc import show_gc
from jobs.warehouse.ls import show_listing
from jobs.warehouse.rm import as_json, removal_line, remove, run_to_remove
from jobs.warehouse.show_schema import show_schema
from jobs.warehouse.status import show_status, watch_status
from pipeline.core.errors import UsageError
from pipeline.store import connect
from pipeline.store.runs.people import num_labels
from pipeline.store.sql.connection import query as rows_of
from pipeline.store.sql.sql_sandbox import only_select

_OPTION = re.compile(r"[\w.]+=")  # a method's first = is behind a bracket
_SECONDS_BETWEEN_LOOKS = 5.0


@app.command(rich_help_panel=LOOK)
def report(
    words: Words = None,
    corpus: Annotated[
        bool, typer.Option("--corpus", help="Words, pages and compression instead of scores.")
    ] = False,
    picture: Annotated[
        Path | None, typer.Option(help="With --corpus: draw them, FILE.png or FILE.svg.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(help="Write a page with all of it and every question, FILE.html.")
    ] = None,
    json: Json = False,
    markdown: WholeTables = False,
) -> None:
    """Print the table of a run: methods, scores, costs.

    Keys: warehouse=, run= (by default the run that was started last), by=SQL, where='SQL', rater=.
    """
    if html is not None:
        if corpus or picture:
            raise UsageError("--html has what --corpus shows; leave --corpus and --picture out")
        from jobs.html.show_html import show_written  # imported here: it imports the stages

        show_written(read_options(words or [], KEYS["report --html"]), html, json)
        return
    if corpus or picture:
        _report_corpus(read_options(words or [], KEYS["report --corpus"]), picture, json, markdown)
        return
    made = make_report(read_options(words or [], KEYS["report"]))
    if json:
        print_json(dataclasses.asdict(made))
    else:
        print_parts(printed_parts(made, markdown), markdown)


def _report_corpus(options: ReadOptions, picture: Path | None, as_json: bool, whole: bool) -> None:
    found = distributions(options.warehouse, options.run)
    if picture:
        draw_histograms(options.warehouse, options.run, picture)
    if as_json:
        print_json([dataclasses.asdict(one) for one in found])
    else:
        print_table(distribution_table(found), whole=whole)


@app.command(rich_help_panel=LOOK)
def view(words: Words = None, json: Json = False) -> None:
    """Serve the page of report --html on this machine.

    From the warehouse, for runs too large for a file; Ctrl-C ends it. Keys: warehouse=, run=,
    port=, by=, where=, rater=, plugins=.
    """
    from jobs.html.show_html import show_served  # imported here, as rendering prompts takes stages

    show_served(read_options(words or [], KEYS["view"]), json)


@app.command(rich_help_panel=LOOK)
def status(
    words: Words = None,
    steps: Annotated[bool, typer.Option("--steps", help="A row per step, not per stage.")] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Every 5 s, until the run is no longer at work.")
    ] = False,
    every: Annotated[
        float | None,
        typer.Option(min=0.1, max=86_400, metavar="SECONDS", help="Watch, but so often."),
    ] = None,
    json: Json = False,
) -> None:
    """Say what of a run is done, running and failed.

    Keys: warehouse=, run=; with cluster.address=, the state of the run's job there, too.
    """
    options = read_options(words or [], KEYS["status"])
    if not watch and every is None:
        show_status(options, json, steps)
        return
    with suppress(KeyboardInterrupt):  # the run goes on
        watch_status(options, json, steps, every or _SECONDS_BETWEEN_LOOKS)


@app.command(rich_help_panel=LOOK)
def trace(
    question_id: str,
    words: Words = None,
    full: Annotated[bool, typer.Option("--full", help="Print the full text of pages.")] = False,
    prompts: Annotated[
        bool, typer.Option("--prompts", help="Print every model call as it was sent.")
    ] = False,
    json: Json = False,
) -> None:
    """Follow one question from pages to scores, by method.

    Keys: warehouse=, run=, method=PREFIX, plugins=DIR (of those that the run used).
    """
    options = read_options(words or [], KEYS["trace"])
    show_trace(options, question_id, full, prompts, json)


@app.command(rich_help_panel=LOOK)
def compare(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[A [B]] [KEY=VALUE]...", show_default=False, autocompletion=completed
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Compare two methods on the questions that both have.

    Difference, interval, p-value, the questions that differ. A alone: against every other; none:
    all against the best. Keys: warehouse=, run= (or run=A_RUN,B_RUN), metric=NAME,...,
    where='SQL', rater=.
    """
    methods = [word for word in words or [] if not _OPTION.match(word)]
    options = [word for word in words or [] if _OPTION.match(word)]
    found = compare_methods(read_options(options, KEYS["compare"]), methods)
    if json:
        print_json(dataclasses.asdict(found))
    else:
        show_comparison(found, options)


@app.command(rich_help_panel=LOOK)
def show(document_id: str, words: Words = None, json: Json = False) -> None:
    """Show a document's memory, pages and gists side by side.

    Keys: warehouse=, run=, memory=, page=0,3..5.
    """
    options = read_options(words or [], KEYS["show"])
    show_pages(options, document_id, json)


@app.command(rich_help_panel=LOOK)
def sql(
    query: str,
    words: Words = None,
    unsafe: Annotated[
        bool, typer.Option("--unsafe", help="Allow COPY and all else: any file, any setting.")
    ] = False,
    json: Json = False,
    markdown: WholeTables = False,
) -> None:
    """Query the tables of a run in SQL.

    DuckDB's SQL; all_TABLE has the rows of every run. Keys: warehouse=, run=.
    """
    options = read_options(words or [], KEYS["sql"])
    with connect(options.warehouse, options.run, unsafe) as connection:
        rows = rows_of(connection, query if unsafe else only_select(connection, query))
    if json:
        print_json(rows)
    else:
        print_rows(rows, markdown)


@app.command(rich_help_panel=LOOK)
def ls(words: Words = None, json: Json = False, markdown: WholeTables = False) -> None:
    """List what there is to choose from, or a warehouse's runs.

    Corpora, methods, engines and experiments, with plugins=DIR those of plugins, too; with
    warehouse=DIR its runs, the latest first, and steps.
    """
    options = read_options(words or [], KEYS["ls"])
    of_warehouse = any(word.startswith("warehouse=") for word in words or [])
    show_listing(options, of_warehouse, json, markdown)


@app.command(rich_help_panel=LOOK)
def schema(
    table: Annotated[
        str | None, typer.Argument(help="A table or view.", show_default=False)
    ] = None,
    words: Words = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print all of it as a page.")
    ] = False,
    json: Json = False,
) -> None:
    """Say what every table, view and column means.

    And every problem code; with plugins=DIR those of plugins, too.
    """
    show_schema(table, words or [], markdown, json)


@app.command(rich_help_panel=KEEP)
def rm(
    words: Words = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    json: Json = False,
) -> None:
    """Delete a run, and of its rows what no other run uses.

    Keys: warehouse=, run=. It asks for the run's name again unless --yes is given. gistmill gc
    deletes the files, after 24 hours.
    """
    options = read_options(words or [], KEYS["rm"])
    name = run_to_remove(options)
    if not yes:
        _confirm(name, num_labels(options.warehouse / "runs" / name))
    removed = remove(options.warehouse, name)
    if json:
        print_json(as_json(name, removed))
    else:
        print_line(removal_line(name, removed))


def _confirm(name: str, labels: int) -> None:
    """Raise UsageError unless the user repeats the run's name; `labels`: how many labels the run
    has."""
    it = f"it and {counted(labels, 'label')} of people" if labels else "it"
    if not sys.stdin.isatty():
        raise UsageError(f"run={name}: deletes {it} for good; add --yes")
    try:
        repeated = typer.prompt(f"repeat the run's name ({name}) to delete {it} for good", err=True)
    except typer.Abort:  # Ctrl-C or the end of what is typed, in the line of the question
        typer.echo(err=True)
        raise UsageError(f"run={name}: not deleted") from None
    if repeated != name:
        raise UsageError(f"run={name}: not deleted, as its name was not repeated")


@app.command(rich_help_panel=KEEP)
def gc(words: Words = None, json: Json = False) -> None:
    """Compact a warehouse's files, and delete replaced ones.

    Keys: warehouse=, older_than=24h. It deletes what removed runs alone had planned, too.
    """
    show_gc(read_options(words or [], KEYS["gc"]), json)
