"""Classes known by a name: one class a name, wherever its module is from."""

from typing import Any

from pipeline.errors import UsageError


def register(known: dict[str, Any], name: str, cls: type, what: str) -> None:
    """Make a class known by its name; `what` says how it comes by it, for the message.

    Raises UsageError where another class has the name. The same class made anew is no other: so
    dataclasses with slots are made.
    """
    other = known.get(name)
    if other is not None and (other.__module__, other.__name__) != (cls.__module__, cls.__name__):
        raise UsageError(
            f"{cls.__module__}: {cls.__name__} {what}, which is that of "
            f"{other.__module__}.{other.__name__}; give it another name"
        )
    known[name] = cls
