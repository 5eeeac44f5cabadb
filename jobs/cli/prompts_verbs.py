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
from stages.prompts.readagent_notebook.notebook_family import import_notebook, shown

prompts = Verbs(help="Check, copy or import a family of prompts.")
app.add_typer(prompts, name="prompts", rich_help_panel=KEEP)

_ALL_GOOD = "all prompts render and all example replies are read"
NewFolder = Annotated[Path, typer.Argument(help="A new folder.")]


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
    folder: NewFolder,
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


@prompts.command()
def import_readagent(
    notebook: Annotated[Path, typer.Argument(help="Your copy of the notebook, FILE.ipynb.")],
    folder: NewFolder,
    json: Json = False,
) -> None:
    """Make a family of the prompts in the authors' notebook.

    Of a copy of the ReadAgent authors' notebook, none of whose code is executed.

    \b
    Example:
      gistmill prompts import-readagent ReadAgent.ipynb my_prompts
    """
    made = import_notebook(notebook, folder)
    print_found(made, lambda made: ["\n".join(shown(made))], json)
    raise typer.Exit(2 if made.failures else 0)
