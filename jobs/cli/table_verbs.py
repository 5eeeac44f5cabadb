"""Verbs that query and describe tables, and list what there is."""

from typing import Annotated

import typer
from upath import UPath

from jobs.cli.app import RUN, Json, WholeTables, reading
from jobs.config.options import ReadOptions
from jobs.output.print_tables import exact_rows, print_found, print_json, print_parts
from jobs.warehouse.ls import listing, listing_parts
from jobs.warehouse.schema import named, named_parts, read_schema, schema_page, schema_parts
from pipeline.files.place import as_path
from pipeline.store import connect
from pipeline.store.sql.sql_sandbox import only_select, rows_within


@reading(*RUN, "rows", "seconds", "memory_limit")
def sql(
    query: str,
    options: ReadOptions,
    unsafe: Annotated[
        bool, typer.Option("--unsafe", help="Allow COPY and all else: any file, any setting.")
    ] = False,
    json: Json = False,
    markdown: WholeTables = False,
) -> None:
    """Query the tables of a run in SQL.

    DuckDB's SQL; all_TABLE has the rows of every run.

    \b
    Example:
      gistmill sql 'select method, count(*) from answers group by method'
    """
    with connect(options.warehouse, options.run, unsafe, options.memory_limit) as connection:
        statement = query if unsafe else only_select(connection, query)
        found, is_cut = rows_within(connection, statement, options.rows, options.seconds)
    print_found(found, exact_rows, json, markdown)
    if is_cut:
        typer.echo(f"gistmill: only the first {options.rows} rows; add rows=N for more", err=True)


@reading("plugins")
def ls(
    kind: Annotated[
        str | None, typer.Argument(help="List these alone: methods, stages, prompts ...")
    ] = None,
    warehouse: Annotated[
        UPath | None, typer.Option(parser=as_path, metavar="DIR", help="Its runs and steps.")
    ] = None,
    *,
    options: ReadOptions,
    json: Json = False,
    markdown: WholeTables = False,
) -> None:
    """List what there is to choose from, or a warehouse's runs.

    Corpora, methods, engines and experiments, and the names of stages, prompts, metrics ..., with
    plugins=DIR those of plugins, too; with warehouse=DIR its runs, the latest first, and steps.

    \b
    Example:
      gistmill ls --warehouse warehouse
    """
    print_found(listing(warehouse, options.plugins, kind), listing_parts, json, markdown)


@reading("plugins")
def schema(
    name: Annotated[
        str | None,
        typer.Argument(help="A table, view, stage, metric, method ...", show_default=False),
    ] = None,
    *,
    options: ReadOptions,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print all of it as a page.")
    ] = False,
    json: Json = False,
) -> None:
    """Say what every table, view and column means.

    And every problem code; of a NAME that gistmill ls lists what it does, and its settings or
    its file. With plugins=DIR those of plugins, too.

    \b
    Example:
      gistmill schema answers
    """
    found = read_schema(options.plugins)
    if markdown:
        print_parts(schema_page(found), whole=True)
    elif name is not None:
        of_name = named(found, name)
        if json:
            print_json(of_name)
        else:
            print_parts(named_parts(of_name))
    else:
        print_found(found, schema_parts, json)
