"""Shared parts of the `gistmill` command's modules: the Typer app, its help and completion, types
of parameters, and `reading`, which registers verbs that read a warehouse. Their options may also be
written as words: `run=NAME` is `--run NAME`."""

import inspect
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from upath import UPath

from jobs.config.options import KEYS, ReadOptions
from jobs.output.cells import printable
from pipeline.core.errors import UsageError, redacted, refuse_secret
from pipeline.files.storage import as_path


class Verb(TyperCommand):
    """A verb; its docstring ends with an example."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return ["[OPTIONS]", *(_usage(param) for param in self.params if _is_argument(param))]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        arguments: list[Any] = [param for param in self.params if _is_argument(param)]
        _section(formatter, "Arguments", [(_shown(one), one.help) for one in arguments if one.help])
        options: list[Any] = [param for param in self.get_params(ctx) if not _is_argument(param)]
        _section(formatter, "Options", [(_shown(one), one.help or "") for one in options])


class VerbGroup(TyperGroup):
    """Verbs, listed by panel, in the order of the panels."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        Verb.format_options(self, ctx, formatter)  # type: ignore[arg-type]  # same attributes
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        panels: dict[str, list[tuple[str, str]]] = {}
        for name, verb in self.commands.items():
            panel = getattr(verb, "rich_help_panel", None)
            title = panel if isinstance(panel, str) else "Verbs"
            panels.setdefault(title, []).append((name, verb.get_short_help_str(200)))
        for title, rows in panels.items():
            _section(formatter, title, rows)


class Verbs(typer.Typer):
    """A Typer app whose commands are `Verb`s."""

    def __init__(self, cls: type[TyperGroup] = VerbGroup, **more: Any) -> None:
        super().__init__(cls=cls, rich_markup_mode=None, **more)

    def command(
        self, name: str | None = None, *, cls: type[TyperCommand] | None = None, **more: Any
    ) -> Callable[..., Any]:
        return super().command(name, cls=cls or Verb, **more)


def _is_argument(param: Any) -> bool:
    return bool(param.param_type_name == "argument")


def _usage(param: Any) -> str:
    shown = _shown(param)
    return shown if param.required or shown.startswith("[") else f"[{shown}]"


def _shown(param: Any) -> str:
    """An argument's name, or an option with its value in words; flags have none."""
    word = param.metavar or param.name.upper()
    if _is_argument(param):
        return str(word)
    names = ", ".join(param.opts)
    return names if param.is_flag or param.count else f"{names} {word}"


def _section(formatter: Any, title: str, rows: list[tuple[str, str]]) -> None:
    if rows:
        with formatter.section(title):
            formatter.write_dl(rows)


app = Verbs(pretty_exceptions_enable=False)

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


def completed(ctx: object, incomplete: str) -> list[str]:
    verb = " ".join(str(getattr(ctx, "command_path", "")).split()[1:])
    parts = [part for part in _PARTS if verb == "bench" and part.startswith(incomplete)]
    return [*parts, *run_words(incomplete, _KEYS.get(verb, _MAKING))]


def run_words(incomplete: str, keys: Iterable[str]) -> list[str]:
    """The keys with this beginning, or `run=` with a run's name."""
    words = [f"{key}=" for key in keys]
    if incomplete.startswith("run="):
        words = sorted(f"run={run.name}" for run in (_WAREHOUSE / "runs").glob("[!.]*/"))
    return [word for word in words if word.startswith(incomplete)]


Words = Annotated[
    list[str] | None,
    typer.Argument(metavar="[KEY=VALUE]...", show_default=False, autocompletion=completed),
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

    Words KEY=VALUE say what a verb works on. Of verbs that look at runs they are options, too:
    run=NAME is --run NAME. gistmill VERB --help has more of it.

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


def _option(kind: Any, metavar: str, help: str, *names: str, **more: Any) -> Any:
    return Annotated[kind | None, typer.Option(*names, metavar=metavar, help=help, **more)]


_MOST = 1_000_000
# The fields of ReadOptions, which has their defaults.
_OPTIONS: dict[str, Any] = {
    "warehouse": _option(UPath, "DIR", "By default ./warehouse.", parser=as_path),
    "run": _option(str, "NAME", "By default the run that was started last, audits apart."),
    "by": _option(str, "SQL", "Over the questions: rows for each of its values, too."),
    "where": _option(str, "SQL", "Only the questions for which it is true."),
    "columns": _option(str, "NAME,...", "Only these, in this order: measures, counts or headings."),
    "names": _option(str, "FILE", "Your names.yaml; or paper, canonical: printed, typed names."),
    "method": _option(str, "NAME", "A method, or how the names of some begin."),
    "metric": _option(str, "NAME,...", "By default those of answers."),
    "rater": _option(str, "NAME", "Whose verdicts count: a rater, or how its name begins."),
    "plugins": _option(str, "DIR,...", "Folders with stages and prompts of your own."),
    "memory": _option(str, "NAME", "Of several that the run has of the document."),
    "page": _option(str, "0,3..5", "By their indexes; by default all."),
    "address": _option(str, "URL", "With the run's job there, too.", "--cluster.address"),
    "port": _option(int, "PORT", "By default 7645; 0: any that is free.", min=0, max=2**16 - 1),
    "older_than": _option(str, "24h", "Delete files that were replaced before; by default 24h."),
    "format": _option(str, "NAME", "The first of those named above by default."),
    "to": _option(str, "FILE", "On any filesystem; by default -, standard output."),
    "caption": _option(str, "TEXT", "By default it says what the numbers are over, and marks."),
    "label": _option(str, "NAME", "Of LaTeX's table; by default tab:RUN."),
    "marks": _option(str, "NAME", "Of the best: bold, the default, stars or none."),
    "n": _option(int, "NUMBER", "How many answers; by default 200.", min=1, max=_MOST),
    "seed": _option(int, "NUMBER", "Of what is drawn; by default 0.", min=0, max=_MOST),
    "rows": _option(int, "NUMBER", "So many are printed; by default 10,000.", min=1, max=10**12),
    "seconds": _option(float, "NUMBER", "Then it is stopped; by default 600.", min=0.1, max=10**9),
    "memory_limit": _option(str, "2GB", "By default 80% of the machine's memory."),
    "person": _option(str, "NAME", "Whose labels they are."),
    "price": _option(
        str,
        "PROMPT,REPLY[,CACHED]",
        "Prices of a million tokens: adds money.",
    ),
    "split_shared": Annotated[
        bool | None,
        typer.Option("--split-shared", help="Divide costs of memories among their methods."),
    ],
}
_WORD = re.compile(r"[\w.]+=")  # a method name has no = before its bracket
_SQL = ("by", "where")  # not stored, and may hold a text that looks like an address


def reading(
    *names: str, panel: str = LOOK, of: Verbs = app, name: str | None = None
) -> Callable[[Callable[..., None]], Any]:
    """Register a verb. Its parameter `options` is replaced by the options in `names`, which are
    fields of ReadOptions; its other parameters are its own options and arguments."""

    def register(verb: Callable[..., None]) -> Any:
        @wraps(verb)
        def command(**given: Any) -> None:
            chosen = {key: given.pop(key) for key in names}
            options = ReadOptions(**{key: v for key, v in chosen.items() if v is not None})
            verb(**given, options=options)

        command.__signature__ = _signature(verb, names)  # type: ignore[attr-defined]
        shown = panel if of is app else None
        return of.command(name, cls=ReadingCommand, rich_help_panel=shown)(command)

    return register


def _signature(verb: Callable[..., None], names: Sequence[str]) -> inspect.Signature:
    kind = inspect.Parameter.KEYWORD_ONLY
    parameters: list[inspect.Parameter] = []
    for own in inspect.signature(verb).parameters.values():
        parameters += (
            [inspect.Parameter(key, kind, default=None, annotation=_OPTIONS[key]) for key in names]
            if own.name == "options"
            else [own.replace(kind=kind)]
        )
    return inspect.Signature(parameters)


class ReadingCommand(Verb):
    """A verb whose options may also be words."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        is_typed = ctx.resilient_parsing  # the user asks for completions
        return list(super().parse_args(ctx, args if is_typed else self._as_options(args)))

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """The completions of options, and of the words for them."""
        of_options = super().shell_complete(ctx, incomplete)
        item = type(super().shell_complete(ctx, "--")[0])
        return [*of_options, *map(item, self.completed(incomplete))]

    def completed(self, incomplete: str) -> list[str]:
        return run_words(incomplete, self._options())

    def _options(self) -> dict[str, str]:
        found = [param.opts[0] for param in self.params if not getattr(param, "is_flag", True)]
        return {option.removeprefix("--").replace("-", "_"): option for option in found}

    def _as_options(self, args: Sequence[str]) -> list[str]:
        """All options first. Raises UsageError for unknown words, empty values and secrets."""
        keys = self._options()
        of_options = {option: key for key, option in keys.items()}
        arguments = [param for param in self.params if not hasattr(param, "is_flag")]
        most = sum(len(args) if param.nargs < 0 else 1 for param in arguments)
        required = sum(param.required for param in arguments)
        options, others, are_words = list[str](), list[str](), False
        rest = iter(args)
        for arg in rest:
            name, equals, value = arg.partition("=")
            key = name if equals and name in keys else of_options.get(name)
            if key and not (are_words and name in of_options):
                value = value if equals else next(rest, "")
                if not value:
                    raise UsageError(f"{key}= is empty; give it a value or leave it out")
                if key not in _SQL:
                    refuse_secret(f"{key}={value}")
                options.append(f"{keys[key]}={value}")
            elif arg == "--":
                are_words = True
            elif arg.startswith("-") and not are_words:
                options.append(arg)
            elif len(others) < (required if _WORD.match(arg) else most):
                others.append(arg)
            else:
                raise UsageError(f"{arg!r}: unknown option; there are {', '.join(keys)}=...")
        return [*options, "--", *others]
