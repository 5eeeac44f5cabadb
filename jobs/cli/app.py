"""Shared parts of the `gistmill` command's modules: the Typer app, its help and completion, types
of parameters, and `reading`, which registers verbs that read a warehouse. A verb takes words
KEY=VALUE, and options that are on or off."""

import inspect
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from jobs.config.options import KEYS, WORDS, read_options
from jobs.output.cells import printable
from pipeline.core.errors import redacted


class VerbGroup(TyperGroup):
    """Verbs, listed by panel, in the order of the panels."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        panels: dict[str, list[tuple[str, str]]] = {}
        for name, verb in self.commands.items():
            panel = getattr(verb, "rich_help_panel", None)
            title = panel if isinstance(panel, str) else "Verbs"
            panels.setdefault(title, []).append((name, verb.get_short_help_str(200)))
        for title, rows in panels.items():
            with formatter.section(title):
                formatter.write_dl(rows)


def verb_group(cls: type[TyperGroup] = VerbGroup, **more: Any) -> typer.Typer:
    return typer.Typer(cls=cls, rich_markup_mode=None, **more)


app = verb_group(pretty_exceptions_enable=False)

# The panels of `gistmill --help`.
MAKE, LOOK, KEEP = "Make runs", "Look at runs", "Keep a warehouse"
RUN = ("warehouse", "run")  # options of most verbs that read

# Completion of words: it runs at every press of the key, so it reads only the folder of runs.
_MAKING = (
    "experiment", "corpus", "corpus.path", "methods", "engine",
    "engine.model", "rater", "rater.model", "memory", "embedder.model", "family", "limit", "sample",
    "repeats",
    "repeat_from", "run", "warehouse", "plugins", "cluster", "cluster.address",
    "cluster.deadline", "reply_format",
)  # fmt: skip
_NOT_OF_ASK = {"experiment", "corpus", "corpus.path", "methods", "run"}
_OF_ASK = ("method", *(key for key in _MAKING if key not in _NOT_OF_ASK))
_KEYS = dict(
    **KEYS,
    ask=_OF_ASK,
    score=("predictions", "method", *_MAKING),
)
_PARTS = ("limit", "schedule", "machines", "cache", "peers", "units", "driver", "rates")  # of bench
_WAREHOUSE = Path("warehouse")


def completed(ctx: Any, incomplete: str) -> list[str]:
    """The keys with this beginning, or `run=` with a run's name; the parts of `bench`."""
    verb = " ".join(str(ctx.command_path).split()[1:])
    keys = getattr(ctx.command.callback, "keys", _KEYS.get(verb, _MAKING))
    words = [*(_PARTS if verb == "bench" else ()), *(f"{key}=" for key in keys)]
    if incomplete.startswith("run="):
        words = sorted(f"run={run.name}" for run in (_WAREHOUSE / "runs").glob("[!.]*/"))
    return [word for word in words if word.startswith(incomplete)]


Words = Annotated[
    list[str] | None,
    typer.Argument(metavar="KEY=VALUE", hidden=True, autocompletion=completed),
]
Methods = Annotated[  # and words
    list[str] | None,
    typer.Argument(metavar="METHOD|KEY=VALUE", hidden=True, autocompletion=completed),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
WholeTables = Annotated[
    bool,
    typer.Option("--markdown", help="In a terminal, too, print whole tables as Markdown."),
]
Force = Annotated[bool, typer.Option("--force", help="Replace what exists.")]


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

    \b
    Example:
      gistmill run experiment=demo
    """


def warn(line: str) -> None:
    sys.stderr.write(printable(redacted(line)) + "\n")


def complain(line: str) -> None:
    """Like `warn`, but in red in a terminal, unless NO_COLOR is set."""
    is_colored = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    text = printable(redacted(line))
    sys.stderr.write(f"\x1b[31m{text}\x1b[0m\n" if is_colored else f"{text}\n")


_WORD = re.compile(r"[\w.]+=")  # a method name has no = before its bracket


def reading(
    *keys: str, panel: str = LOOK, of: typer.Typer = app, name: str | None = None
) -> Callable[[Callable[..., None]], Any]:
    """Register a verb that takes words with these `keys` of `WORDS`, and gets them as `options`.

    Its other parameters are its switches, and its arguments, which stand before the words; an
    argument that may be left out is not taken for one if it is a word.
    """

    def register(verb: Callable[..., None]) -> Any:
        parameters = inspect.signature(verb).parameters
        may_be_left_out = {name for name, one in parameters.items() if one.default is None}

        @wraps(verb)
        def command(words: Sequence[str] | None = None, **given: Any) -> None:
            words = [*(words or ())]
            for argument in may_be_left_out & given.keys():
                if isinstance(texts := given[argument], list):
                    words += filter(_WORD.match, texts)
                    given[argument] = [text for text in texts if not _WORD.match(text)]
                elif _WORD.match(str(texts)):
                    words.insert(0, str(texts))
                    given[argument] = None
            verb(**given, options=read_options(words, keys))

        command.keys = keys  # type: ignore[attr-defined]
        command.__signature__ = _signature(parameters)  # type: ignore[attr-defined]
        command.__doc__ = f"{inspect.getdoc(verb)}\n\n\b\nWords:\n{_about(keys)}"
        return of.command(name, rich_help_panel=panel if of is app else None)(command)

    return register


def _signature(parameters: Mapping[str, inspect.Parameter]) -> inspect.Signature:
    """Words in the place of `options`; a list of arguments takes them along."""
    kind = inspect.Parameter.KEYWORD_ONLY
    words = inspect.Parameter("words", kind, default=None, annotation=Words)
    has_list = any(one.annotation == Methods for one in parameters.values())
    return inspect.Signature(
        [words if name == "options" else one.replace(kind=kind)
         for name, one in parameters.items() if name != "options" or not has_list]
    )  # fmt: skip


def _about(keys: Sequence[str]) -> str:
    forms = [f"{key}={WORDS[key][0]}" for key in keys]
    width = max(map(len, forms))
    abouts = [WORDS[key][1] for key in keys]
    return "\n".join(
        f"  {form:{width}}  {about}" for form, about in zip(forms, abouts, strict=True)
    )
