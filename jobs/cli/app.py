"""Shared parts of the `gistmill` command's modules: the Typer app and types of its parameters."""

import sys
from importlib.metadata import version
from typing import Annotated

import typer

from jobs.config.completion import completed
from jobs.output.cells import printable
from pipeline.core.redaction import redacted

app = typer.Typer(pretty_exceptions_enable=False)

# The panels of `gistmill --help`.
MAKE, LOOK, KEEP = "Make runs", "Look at runs", "Keep a warehouse"

Words = Annotated[
    list[str] | None,
    typer.Argument(metavar="[KEY=VALUE]...", show_default=False, autocompletion=completed),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
WholeTables = Annotated[
    bool,
    typer.Option("--markdown", help="In a terminal, too, print whole tables as Markdown."),
]
Force = Annotated[bool, typer.Option("--force", help="Replace a file that exists.")]


def _show_version(is_asked: bool) -> None:
    if is_asked:
        sys.stdout.write(f"gistmill {version('gistmill')}\n")
        raise typer.Exit


@app.callback()
def gistmill(
    show: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Read corpora of long documents, answer question sets from gist memories, and score that.

    Words KEY=VALUE say what a verb works on. Of verbs that look at runs they are options, too:
    run=NAME is --run NAME. gistmill VERB --help has more of it.
    """


def warn(line: str) -> None:
    """Print a line on standard error."""
    sys.stderr.write(printable(redacted(line)) + "\n")
