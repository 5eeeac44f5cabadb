"""The verb `rate`: add a rater to a run, or have people label answers and compare them."""

import dataclasses
from typing import Any

import typer
from typer.core import TyperGroup

from jobs.cli.app import MAKE, Json, WholeTables, Words, app
from jobs.cli.execute_verbs import execute
from jobs.cli.export_verbs import Force, give
from jobs.config.options import KEYS, read_options
from jobs.export.target import Target
from jobs.output.cells import counted
from jobs.output.print_tables import print_json, print_line, print_parts
from jobs.people.agreement import agreements, parts_of
from jobs.people.labels import import_sheet
from jobs.people.sheet import LABELS, sheet
from jobs.run.rate_run import with_rater
from pipeline.core.errors import UsageError

_DEFAULT = "add"


class _WithDefault(TyperGroup):
    """`gistmill rate rater=...` is `gistmill rate add rater=...`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        first = args[0] if args else ""
        if first not in self.commands and first != "--help":
            args = [_DEFAULT, *args]
        return list(super().parse_args(ctx, args))


verbs = typer.Typer(cls=_WithDefault)


@verbs.callback()
def rate() -> None:
    """Add a rater to a run, or compare raters with people."""


@verbs.command(_DEFAULT)
def add(words: Words = None, json: Json = False, markdown: WholeTables = False) -> None:
    """Add a rater to a finished run: run=NAME rater=...

    Nothing is answered again. The word add may be left out.
    """
    execute(with_rater(words or []), json, markdown, retry_policy=None)


@verbs.command("sheet")
def write_sheet(words: Words = None, force: Force = False, json: Json = False) -> None:
    """Write a CSV of answers for a person to label.

    Methods and verdicts are left out. Keys: n=200, seed=0, to=FILE.csv (- prints), warehouse=,
    run=, method=PREFIX, where=SQL over questions.
    """
    options = read_options(words or [], KEYS["rate sheet"])
    target = Target.of(options.to, force)
    if target.path is not None and target.path.suffix != ".csv":
        raise UsageError(f"to={options.to}: a sheet is CSV; name a file that ends in .csv")
    give(target, *sheet(options), json)
    if target.path is not None and not json:
        print_line(f"write {', '.join(LABELS)} into the column label, or leave it empty")


@verbs.command("import")
def import_labels(file: str, words: Words = None, json: Json = False) -> None:
    """Take the labels of a filled sheet as a person's.

    FILE person=NAME, warehouse=, run=. They are rows of the view people.
    """
    found = import_sheet(file, read_options(words or [], KEYS["rate import"]))
    if json:
        print_json(dataclasses.asdict(found))
        return
    print_line(
        f"{counted(found.labels, 'label')} of {found.rater} in run {found.run}, new or changed: "
        f"{found.changed}"
    )
    if left := found.rows - found.labels:
        print_line(
            f"{left} of {found.rows} rows have no label; import the sheet again when they do"
        )
    if found.kept:
        print_line(f"{found.kept} of these had one before, which is kept")


@verbs.command()
def agreement(words: Words = None, json: Json = False, markdown: WholeTables = False) -> None:
    """Compare people with raters, and with each other.

    Percent, Cohen's kappa, confusion matrices. Keys: warehouse=, run=, method=PREFIX, where=SQL
    over questions.
    """
    found = agreements(read_options(words or [], KEYS["rate agreement"]))
    if json:
        print_json(dataclasses.asdict(found))
    else:
        print_parts(parts_of(found), markdown)


app.add_typer(verbs, name=rate.__name__, rich_help_panel=MAKE)
