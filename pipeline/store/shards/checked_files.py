"""The Parquet files of local warehouses that match their checksums, each with the time and size it
had then: only a file that has changed since is read whole again.

<warehouse>/checked.json keeps them for later commands. It is advisory. On object stores, which have
checksums of their own, the pages that are read are checked, and all of a file by `gistmill verify`.
"""

from collections.abc import Callable, Collection
from contextlib import suppress

from pydantic import TypeAdapter, ValidationError
from upath import UPath

from pipeline.files.parquet import refuse_changed
from pipeline.files.place import delete, is_remote, read_object, write_json
from pipeline.files.storage_retries import ignore_refusals

Version = tuple[float, int]
_FILE = "checked.json"
_RECORD = TypeAdapter(dict[str, Version])
_checked: dict[str, Version] = {}  # by path
_kept: dict[UPath, dict[str, Version]] = {}  # warehouse -> its record, as it was read or written


def check_once(file: UPath, version: Version, content: Callable[[], bytes]) -> None:
    """Check the content of a file, unless it is known to match its checksum with this time of
    change and size. Raises ArrowInvalid if it does not."""
    if _checked.get(str(file)) != version:
        refuse_changed(content())
        _checked[str(file)] = version


def recall_checks(warehouse: UPath) -> None:
    """Read the record of earlier commands."""
    if is_remote(warehouse):
        return
    with ignore_refusals(), suppress(ValidationError):
        found = _RECORD.validate_python(read_object(warehouse / _FILE))
        _kept[warehouse] = {str(warehouse / name): version for name, version in found.items()}
        _checked.update(_kept[warehouse])


def forget_checks(warehouse: UPath) -> None:
    """Have every file of the warehouse read again. Raises StorageError."""
    if not is_remote(warehouse):
        delete(warehouse / _FILE)
    for path in [path for path in _checked if UPath(path).is_relative_to(warehouse)]:
        del _checked[path]


def record_checks(warehouse: UPath, files: Collection[UPath]) -> None:
    """Write the record of those of the files that match their checksums, if it has changed."""
    now = {str(file): _checked[str(file)] for file in files if str(file) in _checked}
    if is_remote(warehouse) or now == _kept.get(warehouse):
        return
    with ignore_refusals():
        names = {str(UPath(path).relative_to(warehouse)): [*now[path]] for path in now}
        write_json(warehouse / _FILE, names)
        _kept[warehouse] = now
