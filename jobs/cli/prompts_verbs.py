"""Verbs about families of prompts."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from jobs.cli.app import KEEP, Json, Words, app
from jobs.config.options import KEYS, read_options
from jobs.output.print_tables import print_json, print_line
from pipeline.core.errors import UsageError
from pipeline.core.plugins import load_plugins, plugin_folders
from pipeline.core.settings import CONF
from pipeline.families.family_copy import export_family
from pipeline.work.check_family import check_family
from stages.prompts.readagent_notebook.notebook_family import import_notebook, shown

prompts = typer.Typer(help="Check, copy or import a family of prompts.")
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


@prompts.command()
def export(
    family: Annotated[str, typer.Argument(help="A family's name, or its folder.")],
    folder: Annotated[Path, typer.Argument(help="A new folder.")],
    words: Words = None,
    json: Json = False,
) -> None:
    """Copy a family to FOLDER, to read and to change.

    With all that it inherits; plugins=FOLDER where it is a plugin's.
    """
    options = read_options(words or [], KEYS["prompts export"])
    made = export_family(family, folder, options.plugins)
    if json:
        print_json(dataclasses.asdict(made))
    else:
        print_line(
            f"{made.folder}: family.yaml and {len(made.templates)} templates; "
            f"family={made.folder} reads with them"
        )


@prompts.command()
def import_readagent(
    notebook: Annotated[Path, typer.Argument(help="Your copy of the notebook, FILE.ipynb.")],
    folder: Annotated[Path, typer.Argument(help="A new folder.")],
    json: Json = False,
) -> None:
    """Make a family of the prompts in the authors' notebook.

    Of a copy of the ReadAgent authors' notebook, none of whose code is executed.
    """
    made = import_notebook(notebook, folder)
    if json:
        print_json(dataclasses.asdict(made))
    else:
        print_line("\n".join(shown(made)))
    raise typer.Exit(2 if made.failures else 0)


_PLUGINS = "plugins="


def check_prompts(words: Sequence[str]) -> list[str]:
    """One line per failure. `words`: a family's folder, and `plugins=A,B`, whose prompts are
    checked, too. Without a folder, checks the families of all `conf` folders.

    Raises UsageError where the folder is no family, or a plugin cannot be imported.
    """
    folders = [Path(word) for word in words if not word.startswith(_PLUGINS)]
    plugins = [word.removeprefix(_PLUGINS) for word in words if word.startswith(_PLUGINS)]
    if len(folders) > 1 or len(plugins) > 1:
        raise UsageError("prompts check: takes one FOLDER, and plugins=FOLDER,FOLDER once")
    named = plugin_folders(plugins[0] if plugins else None)
    roots = [conf / "prompts" for conf in [*load_plugins(named), CONF]]
    every = sorted(file.parent for root in roots for file in root.glob("*/family.yaml"))
    return [line for family in folders or every for line in check_family(family, roots)]
