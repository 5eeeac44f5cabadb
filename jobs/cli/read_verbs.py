"""Verbs that look at a run: its pages, progress, questions, methods and documents."""

from contextlib import suppress
from typing import Annotated, Any

import typer

from jobs.cli.app import RUN, Json, reading
from jobs.compare.compare import compare as compare_methods
from jobs.compare.show_compare import comparison_parts
from jobs.config.options import ReadOptions
from jobs.output.print_tables import print_found
from jobs.trace.show_pages import document_parts, shown_document
from jobs.trace.show_trace import show_trace
from jobs.warehouse.status import show_status

_SECONDS_BETWEEN_LOOKS = 5.0


@reading(*RUN, "by", "where", "rater", "columns", "names", "plugins", "port")
def view(options: ReadOptions, json: Json = False) -> None:
    """Serve the pages of a warehouse's runs on this machine.

    From the warehouse, for runs too large for a file, and live for one at work; Ctrl-C ends it.

    \b
    Example:
      gistmill view run=night
    """
    from jobs.html.serve import serve  # imported here: it imports the stages

    serve(options, json)


@reading(*RUN, "address")
def status(
    options: ReadOptions,
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

    \b
    Example:
      gistmill status --watch
    """
    seconds = every or (_SECONDS_BETWEEN_LOOKS if watch else None)
    with suppress(KeyboardInterrupt):  # the run goes on
        show_status(options, json, steps, seconds)


@reading(*RUN, "method", "plugins")
def trace(
    question_id: str,
    options: ReadOptions,
    full: Annotated[bool, typer.Option("--full", help="Print the full text of pages.")] = False,
    prompts: Annotated[
        bool, typer.Option("--prompts", help="Print every model call as it was sent.")
    ] = False,
    json: Json = False,
) -> None:
    """Follow one question from pages to scores, by method.

    \b
    Example:
      gistmill trace meeting-02 method=readagent_p
    """
    show_trace(options, question_id, full, prompts, json)


def _completed(ctx: Any, incomplete: str) -> list[str]:
    return list(ctx.command.completed(incomplete))


@reading(*RUN, "metric", "where", "rater")
def compare(
    methods: Annotated[
        list[str] | None,
        typer.Argument(metavar="[A [B]]", show_default=False, autocompletion=_completed),
    ] = None,
    *,
    options: ReadOptions,
    json: Json = False,
) -> None:
    """Compare two methods on the questions that both have.

    Difference, interval, p-value, the questions that differ. A alone: against every other; none:
    all against the best. run=A_RUN,B_RUN: A of the one, B of the other.

    \b
    Example:
      gistmill compare gist_only full_text metric=accuracy
    """
    found = compare_methods(options, methods or [])
    print_found(found, lambda found: comparison_parts(found, options.warehouse), json)


@reading(*RUN, "memory", "page")
def show(document_id: str, options: ReadOptions, json: Json = False) -> None:
    """Show a document's memory: its pages, each with its gist.

    \b
    Example:
      gistmill show tide_mill_handbook page=1
    """
    print_found(shown_document(options, document_id), document_parts, json)
