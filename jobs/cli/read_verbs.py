"""Verbs that show a run: its pages, progress, questions, methods, documents and tables; and the
choices for a run."""

from contextlib import suppress
from dataclasses import replace

from jobs.cli.app import RUN, Names, reading, switch, warn
from jobs.config.options import REPORT, WAREHOUSE, ReadOptions
from jobs.output.print_tables import exact_rows, markdown, print_found, print_line


@reading(*RUN, *REPORT, "html")
def report(
    options: ReadOptions,
    corpus: bool = switch("--corpus", "Words, pages and compression instead of scores."),
    published: bool = switch("--published", "The paper's figures beside the run's."),
    split_shared: bool = switch("--split-shared", "Divide costs of memories among their methods."),
    whole: bool = switch("--all", "In a terminal, too, all of it."),
) -> None:
    """Print the table of a run: methods, scores, costs.

    In a terminal its headline; into pipes and files, and with --all, all of it.

    Example: gistmill report by=question_type only=scores
    """
    from jobs.cli.print_report import show_report

    options = replace(options, split_shared=split_shared)
    show_report(options, corpus, published, whole)


@reading(*RUN, "by", "where", "rater", "columns", "names", "plugins", "port")
def view(options: ReadOptions) -> None:
    """Serve the pages of a warehouse's runs on this machine.

    From the warehouse, for runs too large for a file, and live for one at work; Ctrl-C ends it.

    Example: gistmill view run=night
    """
    from jobs.html.serve import serve  # imported here: it imports the stages

    serve(options)


@reading(*RUN, "every")
def status(
    options: ReadOptions,
    watch: bool = switch("--watch", "Every 5 s, until the run is no longer at work."),
) -> None:
    """Say what of a run is done, running and failed.

    Example: gistmill status --watch
    """
    from jobs.warehouse.status import show_status

    seconds = options.every or (5.0 if watch else None)
    with suppress(KeyboardInterrupt):  # the run goes on
        show_status(options, seconds)


@reading(*RUN, "method", "plugins")
def trace(
    question_id: str,
    options: ReadOptions,
    full: bool = switch("--full", "Print the full text of pages."),
    prompts: bool = switch("--prompts", "Print every model call as it was sent."),
) -> None:
    """Follow one question from pages to scores, by method.

    Example: gistmill trace meeting-02 method=readagent_p
    """
    from jobs.trace.show import show_trace

    show_trace(options, question_id, full, prompts)


@reading(*RUN, "metric", "where", "rater")
def compare(methods: Names = None, *, options: ReadOptions) -> None:
    """Compare two methods on the questions that both have.

    Difference, interval, p-value, the questions that differ. A alone: against every other.
    run=A_RUN,B_RUN: A of the one, B of the other; by default each method of both.

    Example: gistmill compare gist_only full_text metric=accuracy
    """
    from jobs.compare.compare import compare as compare_methods
    from jobs.compare.show_compare import comparison_parts

    compared = compare_methods(options, methods or [])
    print_found(compared, lambda _: comparison_parts(compared), options.as_json)


@reading(*RUN, "memory", "page")
def show(document_id: str, options: ReadOptions) -> None:
    """Show a document's memory: its pages, each with its gist.

    Example: gistmill show tide_mill_handbook page=1
    """
    from jobs.trace.show import document_parts, shown_document

    print_found(shown_document(options, document_id), document_parts, options.as_json)


@reading(*RUN, "rows", "seconds")
def sql(
    query: str,
    options: ReadOptions,
    unsafe: bool = switch("--unsafe", "Allow COPY and all else: any file, any setting."),
) -> None:
    """Query the tables of a run in SQL.

    DuckDB's SQL; all_TABLE has the rows of every run.

    Example: gistmill sql 'select method, count(*) from answers group by method'
    """
    from pipeline.store import connect
    from pipeline.store.sql.connection import rows_within

    with connect(options.warehouse, options.run, unsafe) as connection:
        rows, is_cut = rows_within(connection, query, options.rows, options.seconds)
    print_found(rows, exact_rows, options.as_json)
    if is_cut:
        warn(f"gistmill: only the first {options.rows} rows; add rows=N for more")


@reading("warehouse", "plugins")
def ls(kinds: Names = None, *, options: ReadOptions) -> None:
    """List what there is to choose from, or a warehouse's runs.

    Corpora, methods, engines and experiments, with plugins=DIR those of plugins, too; with
    warehouse=DIR its runs, the latest first. With NAMEs, such as methods, stages or metrics, those
    lists alone.

    Example: gistmill ls warehouse=warehouse
    """
    from jobs.warehouse.listing import listing, listing_parts

    warehouse = None if options.warehouse is WAREHOUSE else options.warehouse
    print_found(listing(warehouse, options.plugins, kinds or ()), listing_parts, options.as_json)


@reading("plugins")
def schema(
    names: Names = None,
    *,
    options: ReadOptions,
    page: bool = switch("--markdown", "Print all of it as a page."),
) -> None:
    """Say what every table, view and column means.

    Without NAME also every problem code. With a NAME (a table, view, stage, metric, prompt ...):
    what it does, and its settings. With plugins=DIR those of plugins, too.

    Example: gistmill schema answers
    """
    from jobs.warehouse.listing import named, named_parts, read_schema, schema_page, schema_parts

    content = read_schema(options.plugins)
    if page:
        print_line(markdown(schema_page(content)))
    elif names:
        print_found(
            [row for name in names for row in named(content, name)], named_parts, options.as_json
        )
    else:
        print_found(content, schema_parts, options.as_json)
