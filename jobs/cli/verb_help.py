"""The help of verbs: plain text of at most 80 columns, values in words, no value beside a flag."""

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup


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
    """Verbs, listed under the titles of their panels, in the order of these."""

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
    """A Typer app of such verbs."""

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
