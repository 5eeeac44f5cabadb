"""Verbs that maintain a warehouse."""

import dataclasses
import sys
from typing import Annotated

import typer

from jobs.cli.app import KEEP, RUN, Json, reading
from jobs.config.options import ReadOptions
from jobs.output.cells import counted
from jobs.output.print_tables import print_found
from jobs.warehouse.delete import removal_line, remove, run_to_remove, show_gc
from jobs.warehouse.verify import refuse_damaged, verified_lines
from jobs.warehouse.verify import verify as verify_files
from pipeline.core.errors import UsageError
from pipeline.store.runs.people import num_labels


@reading(*RUN, panel=KEEP)
def rm(
    options: ReadOptions,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    json: Json = False,
) -> None:
    """Delete a run, and of its rows what no other run uses.

    It asks for the run's name again unless --yes is given. gistmill gc deletes the files, after 24
    hours.

    \b
    Example:
      gistmill rm run=night
    """
    name = run_to_remove(options)
    if not yes:
        _confirm(name, num_labels(options.warehouse / "runs" / name))
    removed = remove(options.warehouse, name)
    found = {"run": name, **dataclasses.asdict(removed)}
    print_found(found, lambda _: [removal_line(name, removed)], json)


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


@reading("warehouse", "older_than", panel=KEEP)
def gc(options: ReadOptions, json: Json = False) -> None:
    """Compact a warehouse's files, and delete replaced ones.

    It deletes what removed runs alone had planned, too.

    \b
    Example:
      gistmill gc older_than=1h
    """
    show_gc(options, json)


@reading("warehouse", panel=KEEP)
def verify(options: ReadOptions, json: Json = False) -> None:
    """Read every file of a warehouse, and compare pages with checksums.

    Exit code 1 if a file is damaged.

    \b
    Example:
      gistmill verify warehouse=warehouse
    """
    found = verify_files(options.warehouse)
    print_found(found, verified_lines, json)
    refuse_damaged(found)
