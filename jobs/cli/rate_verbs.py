"""The verb `rate`: adds a rater to a run, audits its raters, or has people label answers and
compares them."""

from typing import Any

from jobs.cli.app import (
    MAKE,
    RUN,
    Force,
    Json,
    VerbGroup,
    WholeTables,
    Words,
    app,
    reading,
    verb_group,
)
from jobs.cli.execute_verbs import execute
from jobs.cli.export_verbs import give
from jobs.config.options import ReadOptions
from jobs.output.print_tables import STANDARD_OUTPUT, print_found, print_line
from pipeline.core.errors import UsageError


class _WithDefault(VerbGroup):
    """`gistmill rate rater=...` is `gistmill rate add rater=...`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or args[0] not in (*self.commands, "--help"):
            args = ["add", *args]
        return list(super().parse_args(ctx, args))


verbs = verb_group(_WithDefault)


@verbs.callback()
def rate() -> None:
    """Add raters to a run, audit them, compare them with people."""


@verbs.command()
def add(words: Words = None, json: Json = False, markdown: WholeTables = False) -> None:
    """Add a rater to a finished run: run=NAME rater=...

    Nothing is answered again. The word add may be left out.

    Example: gistmill rate add run=night rater=extractive
    """
    from jobs.run.stored_run import with_rater

    execute(with_rater(words or []), json, markdown, retry_policy=None)


@verbs.command()
def audit(words: Words = None, json: Json = False, markdown: WholeTables = False) -> None:
    """Give a run's raters answers of known worth, and count their mistakes: run=NAME

    n=50 questions are drawn by seed=0; a larger n adds some.

    The run NAME-audit has the answers and verdicts. The report of the audited
    run then has corrected means beside the raw ones.

    Example: gistmill rate audit run=night n=50
    """
    from jobs.run.stored_run import audit_run

    execute(audit_run(words or []), json, markdown)


@reading(*RUN, "method", "where", "n", "seed", "to", of=verbs, name="sheet")
def write_sheet(options: ReadOptions, force: Force = False, json: Json = False) -> None:
    """Write a CSV of answers for a person to label.

    Methods and verdicts are left out.

    Example: gistmill rate sheet run=night n=100 to=sheet.csv
    """
    from jobs.people.labels import LABELS, sheet

    is_file = options.to != STANDARD_OUTPUT
    if is_file and not options.to.endswith(".csv"):
        raise UsageError(f"to={options.to}: a sheet is CSV; name a file that ends in .csv")
    give(options.to, force, json, lambda: sheet(options))
    if is_file and not json:
        print_line(f"write {', '.join(LABELS)} into the column label, or leave it empty")


@reading(*RUN, "person", of=verbs, name="import")
def import_labels(file: str, options: ReadOptions, json: Json = False) -> None:
    """Take the labels of a filled sheet as a person's.

    They are rows of the view people.

    Example: gistmill rate import sheet.csv run=night person=ada
    """
    from jobs.people.labels import import_sheet, imported_lines

    print_found(import_sheet(file, options), imported_lines, json)


@reading(*RUN, "method", "where", of=verbs)
def agreement(options: ReadOptions, json: Json = False, markdown: WholeTables = False) -> None:
    """Compare people with raters, and with each other.

    Percent, Cohen's kappa, confusion matrices.

    Example: gistmill rate agreement run=night
    """
    from jobs.people.labels import agreement_parts, agreements

    print_found(agreements(options), agreement_parts, json, markdown)


app.add_typer(verbs, name=rate.__name__, rich_help_panel=MAKE)
