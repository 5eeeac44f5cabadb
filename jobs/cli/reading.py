"""Verbs that read a warehouse, and `gc`, which tidies it."""

import dataclasses
import re
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from jobs.cli.app import Json, Words, app
from jobs.compare import compare as compare_methods
from jobs.corpus import distributions, draw, table
from jobs.gc import show_gc
from jobs.ls import show_listing
from jobs.options import ReadOptions, read_options
from jobs.render import render
from jobs.report import make_report
from jobs.show_compare import show as show_comparison
from jobs.show_pages import show_pages
from jobs.show_schema import show_schema
from jobs.show_trace import show_trace
from jobs.status import show_status, watch_status
from jobs.tables import print_json, print_line, print_table
from pipeline.store import connect
from pipeline.store.locks import only_select
from pipeline.store.views import query as rows_of

_OPTION = re.compile(r"[\w.]+=")  # a method's first = stands behind a bracket
_SECONDS_BETWEEN_LOOKS = 5.0


@app.command()
def report(
    words: Words = None,
    corpus: Annotated[
        bool, typer.Option("--corpus", help="Words, pages and compression instead of scores.")
    ] = False,
    picture: Annotated[
        Path | None, typer.Option(help="With --corpus: draw them, FILE.png or FILE.svg.")
    ] = None,
    json: Json = False,
) -> None:
    """The table of a run: warehouse=, run=, by=SQL, where='SQL', rater=."""
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
    """What is done, running and failed, from the files alone: warehouse=, run=. With
    cluster.address=, also the state of the run's job there."""
    options = read_options(words or [], ("warehouse", "run", "cluster.address"))
    if not watch and every is None:
        show_status(options, json, steps)
        return
    with suppress(KeyboardInterrupt):  # the run goes on
        watch_status(options, json, steps, every or _SECONDS_BETWEEN_LOOKS)


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
def compare(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[A [B]] [KEY=VALUE]...", show_default=False)
    ] = None,
    json: Json = False,
) -> None:
    """Two methods on the questions both have: difference, interval, p-value, the questions that
    differ. A alone: all others against it; none: all against the best. warehouse=, run= (or
    run=A_RUN,B_RUN), metric=NAME,..., where='SQL', rater=."""
    methods = [word for word in words or [] if not _OPTION.match(word)]
    options = [word for word in words or [] if _OPTION.match(word)]
    allowed = ("warehouse", "run", "metric", "where", "rater")
    found = compare_methods(read_options(options, allowed), methods)
    if json:
        print_json(dataclasses.asdict(found))
    else:
        show_comparison(found, options)


@app.command()
def show(document_id: str, words: Words = None, json: Json = False) -> None:
    """A document's memory, pages and gists side by side: warehouse=, run=, memory=, page=0,3..5."""
    options = read_options(words or [], ("warehouse", "run", "memory", "page"))
    show_pages(options, document_id, json)


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
    """What every table, view and column means, and the problem codes; with plugins=DIR those of
    plugins, too."""
    show_schema(table, words or [], markdown, json)


@app.command()
def gc(words: Words = None, json: Json = False) -> None:
    """Compact shards into few files, and delete what compactions replaced: warehouse=,
    older_than=24h."""
    show_gc(read_options(words or [], ("warehouse", "older_than")), json)
