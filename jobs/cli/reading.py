"""Verbs that read a warehouse, and `gc`, which tidies it."""

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from jobs.cli.app import Json, Words, app
from jobs.corpus import distributions, draw, table
from jobs.gc import show_gc
from jobs.ls import show_listing
from jobs.options import ReadOptions, read_options
from jobs.render import render
from jobs.report import make_report
from jobs.show_trace import show_trace
from jobs.status import show_status
from jobs.tables import print_json, print_line, print_table
from pipeline.errors import UsageError
from pipeline.store import connect
from pipeline.store.locks import only_select
from pipeline.store.views import query as rows_of

_OF_PAGES = ("warehouse", "run", "by", "where", "rater", "plugins")


@app.command()
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
) -> None:
    """The table of a run: warehouse=, run=, by=SQL, where='SQL', rater=."""
    if html is not None:
        if corpus or picture:
            raise UsageError("--html has what --corpus shows; leave --corpus and --picture out")
        from jobs.html.show import show_written  # imported here, as rendering prompts takes stages

        show_written(read_options(words or [], _OF_PAGES), html, json)
        return
    if corpus or picture:
        _report_corpus(read_options(words or [], ("warehouse", "run")), picture, json)
        return
    made = make_report(read_options(words or [], ("warehouse", "run", "by", "where", "rater")))
    if json:
        print_json(dataclasses.asdict(made))
    else:
        print_line(render(made))


def _report_corpus(options: ReadOptions, picture: Path | None, as_json: bool) -> None:
    found = distributions(options.warehouse, options.run)
    if picture:
        draw(options.warehouse, options.run, picture)
    if as_json:
        print_json([dataclasses.asdict(one) for one in found])
    else:
        print_table(table(found))


@app.command()
def view(words: Words = None, json: Json = False) -> None:
    """The page of report --html from the warehouse, on this machine alone, for runs too large for
    a file: warehouse=, run=, port=, by=, where=, rater=. Ctrl-C ends it."""
    from jobs.html.show import show_served  # imported here, as rendering prompts takes stages

    show_served(read_options(words or [], (*_OF_PAGES, "port")), json)


@app.command()
def status(words: Words = None, json: Json = False) -> None:
    """What is done, running and failed, from the files alone: warehouse=, run=. With
    cluster.address=, also the state of the run's job there."""
    show_status(read_options(words or [], ("warehouse", "run", "cluster.address")), json)


@app.command()
def trace(
    question_id: str,
    words: Words = None,
    full: Annotated[bool, typer.Option("--full", help="Print the full text of pages.")] = False,
    prompts: Annotated[
        bool, typer.Option("--prompts", help="Print every model call: exactly what was sent.")
    ] = False,
    json: Json = False,
) -> None:
    """One question from pages to scores, by method: warehouse=, run=, method=PREFIX, plugins=DIR
    (of those that the run used)."""
    options = read_options(words or [], ("warehouse", "run", "method", "plugins"))
    show_trace(options, question_id, full, prompts, json)


@app.command()
def sql(
    query: str,
    words: Words = None,
    unsafe: Annotated[
        bool, typer.Option("--unsafe", help="Allow COPY and all else: any file, any setting.")
    ] = False,
    json: Json = False,
) -> None:
    """A DuckDB query over the tables of a run (all_TABLE: of every run): warehouse=, run=."""
    options = read_options(words or [], ("warehouse", "run"))
    with connect(options.warehouse, options.run, unsafe) as connection:
        rows = rows_of(connection, query if unsafe else only_select(connection, query))
    if json:
        print_json(rows)
    else:
        print_table(rows, is_exact=True)


@app.command()
def ls(words: Words = None, json: Json = False) -> None:
    """List corpora, methods, engines and experiments, with plugins=DIR those of plugins, too; with
    warehouse=DIR, its runs and steps."""
    options = read_options(words or [], ("warehouse", "plugins"))
    of_warehouse = any(word.startswith("warehouse=") for word in words or [])
    show_listing(options, of_warehouse, json)


@app.command()
def gc(words: Words = None, json: Json = False) -> None:
    """Compact shards into few files, and delete what compactions replaced: warehouse=,
    older_than=24h."""
    show_gc(read_options(words or [], ("warehouse", "older_than")), json)
