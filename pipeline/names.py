"""Registries of classes by name: stages, prompts, tables and corpus formats."""

from typing import Any

from pipeline.errors import UsageError


def register(known: dict[str, Any], name: str, cls: type, what: str) -> None:
    """Add a class to the registry `known`; `what` describes the name's role, for the message.

    Raises UsageError where another class has the name. A class of the same module and name replaces
    the earlier one, since dataclasses with slots are created twice.
    """
    other = known.get(name)
    if other is not None and (other.__module__, other.__name__) != (cls.__module__, cls.__name__):
        raise UsageError(
            f"{cls.__module__}: {cls.__name__} {what}, which is that of "
            f"{other.__module__}.{other.__name__}; give it another name"
        )
    known[name] = cls
