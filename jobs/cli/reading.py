"""Verbs that read a warehouse: their common options, which may also be written as words: `run=NAME`
is `--run NAME`."""

import inspect
import re
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Annotated, Any

import typer
from typer.core import TyperCommand
from upath import UPath

from jobs.cli.app import LOOK, app
from jobs.config.completion import run_words
from jobs.config.options import ReadOptions
from pipeline.core.errors import UsageError
from pipeline.core.secrets import refuse_secret
from pipeline.files.place import as_path

RUN = ("warehouse", "run")
Warehouse = Annotated[
    UPath | None, typer.Option(parser=as_path, metavar="DIR", help="By default ./warehouse.")
]


def _text(metavar: str, help: str) -> Any:
    return Annotated[str | None, typer.Option(metavar=metavar, help=help)]


_COMMON: dict[str, Any] = {
    "warehouse": Warehouse,
    "run": _text("NAME", "By default the run that was started last."),
    "by": _text("SQL", "Over the questions: rows for each of its values, too."),
    "where": _text("SQL", "Only the questions for which it is true."),
    "method": _text("NAME", "A method, or how the names of some begin."),
    "rater": _text("NAME", "Whose verdicts count: a rater, or how its name begins."),
    "plugins": _text("DIR,...", "Folders with stages and prompts of your own."),
}
_WORD = re.compile(r"[\w.]+=")  # a method's first = is behind a bracket
_SQL = ("by", "where")  # not stored, and may hold a text that looks like an address


def reading(
    *common: str, panel: str = LOOK, of: typer.Typer = app, name: str | None = None
) -> Callable[[Callable[..., None]], Any]:
    """Register a verb. Its parameter `options` is made of the options in `common`, which are fields
    of ReadOptions; its other parameters are options and arguments of its own."""

    def register(verb: Callable[..., None]) -> Any:
        @wraps(verb)
        def command(**given: Any) -> None:
            chosen = {key: given.pop(key) for key in common}
            options = ReadOptions(**{key: v for key, v in chosen.items() if v is not None})
            verb(**given, options=options)

        command.__signature__ = _signature(verb, common)  # type: ignore[attr-defined]
        return of.command(name, cls=ReadingCommand, rich_help_panel=panel)(command)

    return register


def _signature(verb: Callable[..., None], common: Sequence[str]) -> inspect.Signature:
    """The parameters of a verb with the common ones in the place of `options`."""
    kind = inspect.Parameter.KEYWORD_ONLY
    parameters: list[inspect.Parameter] = []
    for own in inspect.signature(verb).parameters.values():
        parameters += (
            [inspect.Parameter(key, kind, default=None, annotation=_COMMON[key]) for key in common]
            if own.name == "options"
            else [own.replace(kind=kind)]
        )
    return inspect.Signature(parameters)


class ReadingCommand(TyperCommand):
    """A verb that takes its options as words, too."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        is_typed = ctx.resilient_parsing  # by a user who asks for completions
        return list(super().parse_args(ctx, args if is_typed else self._as_options(args)))

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """The completions of options, and of the words in their place."""
        of_options = super().shell_complete(ctx, incomplete)
        item = type(super().shell_complete(ctx, "--")[0])
        return [*of_options, *map(item, self.completed(incomplete))]

    def completed(self, incomplete: str) -> list[str]:
        """The words that complete what was typed: keys, or `run=` with a run's name."""
        return run_words(incomplete, self._options())

    def _options(self) -> dict[str, str]:
        """The options that take a value, by their key as a word."""
        found = [param.opts[0] for param in self.params if not getattr(param, "is_flag", True)]
        return {option.removeprefix("--").replace("-", "_"): option for option in found}

    def _as_options(self, args: Sequence[str]) -> list[str]:
        """The arguments with all options before the others. Raises UsageError for words that are no
        option and no argument, empty values and secrets."""
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
                _check(key, value)
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


def _check(key: str, value: str) -> None:
    if not value:
        raise UsageError(f"{key}= is empty; give it a value or leave it out")
    if key not in _SQL:
        refuse_secret(f"{key}={value}")
