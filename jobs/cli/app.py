"""What the modules of the `gistmill` command share: the Typer app and types of its parameters."""

import sys
from typing import Annotated

import typer

from jobs.tables import printable
from pipeline.secrets import without_passwords

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

Words = Annotated[list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
WholeTables = Annotated[
    bool,
    typer.Option("--markdown", help="In a terminal, too, print whole tables as Markdown."),
]


def warn(line: str) -> None:
    """Print a line on standard error."""
    sys.stderr.write(printable(without_passwords(line)) + "\n")
