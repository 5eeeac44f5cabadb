"""Verbs about families of prompts."""

from typing import Annotated

import typer

from jobs.check_prompts import check_prompts
from jobs.cli.app import KEEP, Json, app
from jobs.tables import print_json, print_line

prompts = typer.Typer(help="Check a family of prompts.")
app.add_typer(prompts, name="prompts", rich_help_panel=KEEP)


@prompts.command()
def check(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FOLDER] [plugins=FOLDER,...]", show_default=False),
    ] = None,
    json: Json = False,
) -> None:
    """Render every prompt of a family (default: all families) and parse its example replies."""
    failures = check_prompts(words or [])
    if json:
        print_json({"failures": failures})
    else:
        print_line("\n".join(failures) or "all prompts render and all example replies are read")
    raise typer.Exit(2 if failures else 0)
