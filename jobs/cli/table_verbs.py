"""Verbs that query and describe tables, and list what there is."""

from typing import Annotated

import typer
from upath import UPath

from jobs.cli.app import RUN, Json, WholeTables, reading
from jobs.config.options import ReadOptions
from jobs.output.print_tables import exact_rows, print_found, print_parts
from jobs.warehouse.ls import listing, listing_parts
from jobs.warehouse.registered import described, described_parts
from jobs.warehouse.schema import read_schema, schema_page, schema_parts, table_named, table_parts
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
    warehouse: Annotated[
        UPath | None, typer.Option(parser=as_path, metavar="DIR", help="Its runs and steps.")
    ] = None,
    *,
    options: ReadOptions,
    json: Json = False,
    markdown: WholeTables = False,
) -> None:
    """List what there is to choose from, or a warehouse's runs.

    Corpora, methods, engines and experiments, with plugins=DIR those of plugins, too; with
    warehouse=DIR its runs, the latest first, and steps.

    \b
    Example:
      gistmill ls --warehouse warehouse
    """
    print_found(listing(warehouse, options.plugins), listing_parts, json, markdown)


@reading("plugins")
def schema(
    table: Annotated[
        str | None,
        typer.Argument(help="A table, view, engine, metric, rubric.", show_default=False),
    ] = None,
    *,
    options: ReadOptions,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print all of it as a page.")
    ] = False,
    json: Json = False,
) -> None:
    """Say what every table, view and column means.

    And every problem code, engine, metric and rubric; with plugins=DIR those of plugins, too.

    \b
    Example:
      gistmill schema answers
    """
    found = read_schema(options.plugins)
    if markdown:
        print_parts(schema_page(found), whole=True)
    elif table is not None and (one := described(table)):
        print_found(one, described_parts, json)
    elif table is not None:
        print_found(table_named(found, table), table_parts, json)
    else:
        print_found(found, schema_parts, json)
