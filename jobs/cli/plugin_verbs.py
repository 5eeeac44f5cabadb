"""Verbs about plugins."""

from typing import Annotated

import typer

from jobs.cli.app import KEEP, Json, app
from jobs.cli.verb_help import Verbs
from jobs.output.print_tables import print_found
from jobs.plugin.new_plugin import new_plugin
from pipeline.core.errors import UsageError

plugin = Verbs(help="Begin a plugin.")
app.add_typer(plugin, name="plugin", rich_help_panel=KEEP)


@plugin.command()
def new(  # noqa: PLR0913  # they are its options
    name: Annotated[str, typer.Argument(help="Of the plugin, of its folder, and of what it has.")],
    method: Annotated[bool, typer.Option("--method", help="A way to answer; the default.")] = False,
    metric: Annotated[bool, typer.Option("--metric", help="A score of answers.")] = False,
    engine: Annotated[bool, typer.Option("--engine", help="What replies to prompts.")] = False,
    judge: Annotated[bool, typer.Option("--judge", help="A rubric of verdicts.")] = False,
    corpus: Annotated[bool, typer.Option("--corpus", help="A format of documents.")] = False,
    family: Annotated[bool, typer.Option("--family", help="Prompts in other words.")] = False,
    json: Json = False,
) -> None:
    """Write a folder with a plugin that works, and its test.

    \b
    Example:
      gistmill plugin new my_method --method
    """
    given = {"method": method, "metric": metric, "engine": engine, "judge": judge,
             "corpus": corpus, "family": family}  # fmt: skip
    kinds = [kind for kind, is_given in given.items() if is_given]
    if len(kinds) > 1:
        raise UsageError(f"--{', --'.join(kinds)}: one of them at a time")
    files = new_plugin(name, kinds[0] if kinds else "method")
    lines = "\n".join(map(str, files))
    print_found({"files": files}, lambda _: [lines, f"pytest {name} tests it"], json)
