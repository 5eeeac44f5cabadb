"""The target of an export: `to=FILE`, on any filesystem, `to=-`, standard output, or a folder."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from io import TextIOWrapper

from upath import UPath

from pipeline.core.errors import UsageError
from pipeline.files.named_paths import refuse_unreachable_path, refuse_unwritable_path, unwritable
from pipeline.files.place import (
    as_path,
    delete_abandoned,
    delete_folder,
    exists,
    is_remote,
    make_folder,
    path_kind,
    write,
)
from pipeline.files.processes import part_name

STANDARD_OUTPUT = "-"


@dataclass(frozen=True)
class Target:
    """A file, or standard output if `path` is None."""

    path: UPath | None

    @classmethod
    def of(cls, to: str, is_forced: bool) -> "Target":
        """The target that `to=` names.

        Raises UsageError for a folder, for what cannot be written, and for an existing file without
        --force.
        """
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

    def write(self, content: str | bytes) -> None:
        """Write a text as UTF-8, or bytes to a file. Raises UsageError if a remote store has no
        such bucket, and StorageError."""
        content_bytes = content.encode() if isinstance(content, str) else content
        if self.path is None:
            if isinstance(sys.stdout, TextIOWrapper):  # it may go to a file, as UTF-8, too
                sys.stdout.reconfigure(encoding="utf-8")
            sys.stdout.write(content_bytes.decode())
            return
        with refuse_unwritable_path(self.path, "to"):
            delete_abandoned(self.path)
            write(self.path, content_bytes)


_MARK = ".gistmill-export"  # an empty file in a folder that an export made


@contextmanager
def export_folder(to: str, is_forced: bool) -> Iterator[UPath]:
    """A new folder `to=` on this machine for what the `with` block writes; deleted if that fails,
    and what it was to replace put back.

    Raises UsageError for what cannot be written and for what exists, but with --force replaces an
    empty folder and one that an export made.
    """
    path = as_path(to)
    if to == STANDARD_OUTPUT or is_remote(path):
        raise UsageError(f"to={to}: no folder on this machine; add to=FOLDER")
    there = path_kind(path)
    is_ours = there == "directory" and (exists(path / _MARK) or not any(path.iterdir()))
    if there and not (is_forced and is_ours):
        what = "is no export of gistmill" if is_forced else "exists already"
        more = "" if is_forced else ", or add --force"
        raise UsageError(f"to={to}: {what}; name another folder{more}")
    if blocking := unwritable(path.parent):
        raise UsageError(f"to={to}: {blocking} is not a writable folder; name another")
    replaced = path.with_name(part_name(path.name))
    delete_abandoned(path)
    if there:
        path.rename(replaced)
    with ExitStack() as undo:
        undo.callback(_restore, path, replaced)
        make_folder(path)
        write(path / _MARK, b"")
        yield path
        undo.pop_all()
    delete_folder(replaced)


def _restore(path: UPath, replaced: UPath) -> None:
    delete_folder(path)
    if exists(replaced):
        replaced.rename(path)


def warn_incomplete(run: str, inputs: Mapping[str, int], warn: Callable[[str], None]) -> None:
    """Give `warn` a line if some of the run's `inputs` are not done."""
    if inputs["not_done"]:
        warn(
            f"INCOMPLETE: {inputs['not_done']} of {inputs['planned']} inputs of run={run} are not "
            "done, and not in what is exported; the same gistmill run goes on with them"
        )
