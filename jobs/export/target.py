"""Where an export is written: `to=FILE`, on any filesystem, or `to=-`, standard output."""

import sys
from dataclasses import dataclass

from upath import UPath

from pipeline.errors import UsageError
from pipeline.place import kind, naming, place, reaching, unwritable, write

STANDARD_OUTPUT = "-"


@dataclass(frozen=True)
class Target:
    """`path` null: standard output."""

    path: UPath | None

    @classmethod
    def of(cls, to: str | None, is_forced: bool) -> "Target":
        """The target that `to=` names, by default standard output.

        Raises UsageError for a folder, what cannot be written, and what exists without --force.
        """
        if to is None or to == STANDARD_OUTPUT:
            return cls(None)
        path = place(to)
        with reaching(path, "to"):
            there = kind(path)
        if there not in (None, "file"):
            raise UsageError(f"to={to}: no file but a folder or a device; name a file")
        if there and not is_forced:
            raise UsageError(f"to={to}: exists already; name another file, or add --force")
        if blocking := unwritable(path.parent):
            raise UsageError(f"to={to}: {blocking} is not a writable folder; name another")
        return cls(path)

    def write(self, text: str) -> None:
        """Write a text as UTF-8. Raises UsageError where a remote store has no such bucket, and
        StorageError."""
        if self.path is None:
            sys.stdout.write(text)
            return
        with naming(self.path, "to"):
            write(self.path, text.encode())
