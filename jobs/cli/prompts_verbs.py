"""Verbs about families of prompts."""

from pathlib import Path
from typing import Annotated

import typer

from jobs.cli.app import KEEP, Json, app, reading
from jobs.cli.verb_help import Verbs
from jobs.config.options import ReadOptions
from jobs.output.print_tables import print_found
from pipeline.core.plugins import load_plugins, plugin_folders
from pipeline.core.settings import CONF
from pipeline.families.family_copy import export_family
from pipeline.work.check_family import check_family

prompts = Verbs(help="Check or copy a family of prompts.")
app.add_typer(prompts, name="prompts", rich_help_panel=KEEP)

_ALL_GOOD = "all prompts render and all example replies are read"


@reading("plugins", of=prompts)
def check(
    folder: Annotated[
        Path | None, typer.Argument(help="A family; by default all are checked.")
    ] = None,
    *,
    options: ReadOptions,
    json: Json = False,
) -> None:
    """Render every prompt of a family (default: all families) and parse its example replies.

    \b
    Example:
      gistmill prompts check my_prompts
    """
    roots = [conf / "prompts" for conf in [*load_plugins(plugin_folders(options.plugins)), CONF]]
    every = sorted(file.parent for root in roots for file in root.glob("*/family.yaml"))
    families = every if folder is None else [folder]
    failures = [line for family in families for line in check_family(family, roots)]
    print_found({"failures": failures}, lambda _: ["\n".join(failures) or _ALL_GOOD], json)
    raise typer.Exit(2 if failures else 0)


@reading("plugins", of=prompts)
def export(
    family: Annotated[str, typer.Argument(help="A family's name, or its folder.")],
    folder: Annotated[Path, typer.Argument(help="A new folder.")],
    options: ReadOptions,
    json: Json = False,
) -> None:
    """Copy a family to FOLDER, to read and to change.

    With all that it inherits; plugins=FOLDER where it is a plugin's.

    \b
    Example:
      gistmill prompts export qmsum my_prompts
    """
    made = export_family(family, folder, options.plugins)
    files = f"family.yaml and {len(made.templates)} templates"
    line = f"{made.folder}: {files}; family={made.folder} reads with them"
    print_found(made, lambda _: [line], json)
