"""The target of an export: `to=FILE`, on any filesystem, or `to=-`, standard output."""

import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from io import TextIOWrapper

from upath import UPath

from pipeline.core.errors import UsageError
from pipeline.files.storage import (
    as_path,
    delete_abandoned,
    is_remote,
    path_kind,
    refuse_unreachable_path,
    unwritable,
    write,
)

STANDARD_OUTPUT = "-"


@dataclass(frozen=True)
class Target:
    """A file, or standard output if `path` is None."""

    path: UPath | None

    @classmethod
    def of(cls, to: str, is_forced: bool) -> "Target":
        """Raises UsageError for a folder, for an unwritable place, and for an existing file without
        --force."""
        if to == STANDARD_OUTPUT:
            return cls(None)
        path = as_path(to)
        with refuse_unreachable_path(path, "to"):
            there = path_kind(path)
        if there not in (None, "file"):
            raise UsageError(f"to={to}: no file but a folder or a device; name a file")
        if there and not is_forced:
            raise UsageError(f"to={to}: exists already; name another file, or add --force")
        if blocking := unwritable(path.parent):
            raise UsageError(f"to={to}: {blocking} is not a writable folder; name another")
        return cls(path)

    def write(self, text: str) -> None:
        """Write a text as UTF-8. Raises UsageError if a remote store has no such bucket, and
        StorageError."""
        if self.path is None:
            if isinstance(sys.stdout, TextIOWrapper):  # it may be redirected to a file
                sys.stdout.reconfigure(encoding="utf-8")
            sys.stdout.write(text)
            return
        with refuse_unreachable_path(self.path, "to") if is_remote(self.path) else nullcontext():
            delete_abandoned(self.path)
            write(self.path, text.encode())


def warn_incomplete(run: str, inputs: Mapping[str, int], warn: Callable[[str], None]) -> None:
    """Give `warn` a line if some of the run's `inputs` are not done."""
    if inputs["not_done"]:
        warn(
            f"INCOMPLETE: {inputs['not_done']} of {inputs['planned']} inputs of run={run} are not "
            "done, and not in what is exported; the same gistmill run goes on with them"
        )
