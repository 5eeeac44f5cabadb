"""Shared parts of the `gistmill` command's modules: the Typer app, its help, types of parameters,
and `reading`, which registers verbs that read a warehouse. A verb takes words
KEY=VALUE and switches; ask, plan and bench have options with a value, too."""

import inspect
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from jobs.config.options import WORDS, read_options
from jobs.output.print_tables import printable
from pipeline.core.errors import UsageError, redacted


class VerbGroup(TyperGroup):
    """Verbs, listed by panel; the example of each has its own line."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        for verb in (self, *self.commands.values()):
            verb.help = re.sub(r"(?m)^Example: ", "\b\nExample:\n  ", verb.help or "")

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for title in (MAKE, LOOK, KEEP, "Verbs"):
            rows = [
                (name, verb.get_short_help_str(200))
                for name, verb in self.commands.items()
                if title == (getattr(verb, "rich_help_panel", None) or "Verbs")
            ]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def verb_group(cls: type[TyperGroup] = VerbGroup, **more: Any) -> typer.Typer:
    return typer.Typer(cls=cls, rich_markup_mode=None, **more)


app = verb_group(pretty_exceptions_enable=False)

# The panels of `gistmill --help`.
MAKE, LOOK, KEEP = "Make runs", "Look at runs", "Keep a warehouse"
RUN = ("warehouse", "run")  # words of most verbs that read


def words_of(form: str) -> Any:
    """An argument of words; a verb's own help lists them."""
    return typer.Argument(metavar=form, hidden=True)


def switch(name: str, about: str) -> Any:
    """An option that is on or off."""
    return typer.Option(False, name, help=about)


def option(form: str, about: str, default: Any = None, *names: str, **more: Any) -> Any:
    """An option with a value; `about` says its default."""
    return typer.Option(default, *names, metavar=form, help=about, show_default=False, **more)


Words = Annotated[list[str] | None, words_of("KEY=VALUE")]
Names = Annotated[list[str] | None, words_of("NAME|KEY=VALUE")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Force = Annotated[bool, typer.Option("--force", help="Replace what exists.")]


def chosen(switches: Mapping[str, object]) -> str:
    """The name of the switch that is on, or "". Raises UsageError for several."""
    names = [name for name, is_on in switches.items() if is_on]
    if len(names) > 1:
        raise UsageError(f"{', '.join(names)}: one of them at a time")
    return names[0] if names else ""


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

    Words KEY=VALUE say what a verb works on; gistmill VERB --help lists them.

    Example: gistmill run experiment=demo
    """


def warn(line: str) -> None:
    sys.stderr.write(printable(redacted(line)) + "\n")


_WORD = re.compile(r"[\w.]+=")  # a method name has no = before its bracket


def reading(
    *keys: str, panel: str = LOOK, of: typer.Typer = app, name: str | None = None
) -> Callable[[Callable[..., None]], Any]:
    """Register a verb that takes words with these `keys` of `WORDS` and --json, and gets them as
    `options`.

    Its other parameters are its switches and its arguments; arguments stand before the words. A
    parameter of type `Names` gets all that is no word, and may get nothing.
    """

    def register(verb: Callable[..., None]) -> Any:
        parameters = inspect.signature(verb).parameters
        names = next((p for p in parameters.values() if p.annotation == Names), None)

        @wraps(verb)
        def command(words: Sequence[str] | None = None, json: bool = False, **values: Any) -> None:
            words = words or ()
            if names is not None:
                values[names.name] = [word for word in words if not _WORD.match(word)]
                words = [word for word in words if _WORD.match(word)]
            verb(**values, options=replace(read_options(words, keys), as_json=json))

        kind = inspect.Parameter.KEYWORD_ONLY
        annotation = Names if names else Words
        words = inspect.Parameter("words", kind, default=None, annotation=annotation)
        json = inspect.Parameter("json", kind, default=False, annotation=Json)
        shown = [words if name == "options" else parameter.replace(kind=kind)
                 for name, parameter in parameters.items() if parameter is not names]  # fmt: skip
        command.__signature__ = inspect.Signature([*shown, json])  # type: ignore[attr-defined]
        forms = {key: f"{key}={WORDS[key][0]}" for key in keys}
        width = max(map(len, forms.values()))
        lines = [f"  {form:{width}}  {WORDS[key][1]}" for key, form in forms.items()]
        command.__doc__ = "\n".join([f"{inspect.getdoc(verb)}\n\n\b\nWords:", *lines])
        return of.command(name, rich_help_panel=panel if of is app else None)(command)

    return register
