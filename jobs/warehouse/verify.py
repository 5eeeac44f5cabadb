"""`gistmill verify`: compare the files of a warehouse with their checksums."""

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from upath import UPath

from jobs.output.cells import Part, counted
from pipeline.core.errors import AccountingError, DamagedError, LeftOutWarning
from pipeline.files.checksums import check_parquet, without_checksum
from pipeline.files.parquet import read_parquet
from pipeline.files.place import list_paths, read
from pipeline.store import connect
from pipeline.store.shards.checked_files import forget_checks
from pipeline.store.shards.footers import FlawError, read_footer
from pipeline.store.sql.connect import readable_run
from pipeline.store.sql.connection import query

_PARQUET = (
    "tables/*/*/*.parquet", "compacted/*.parquet", "compacted/*/*.parquet", "removed/*.parquet",
    "runs/*/units.parquet", "runs/*/people/*.parquet",
)  # fmt: skip
_TEXTS = (
    "gistmill.json", "steps/*.json", "shared/*/*.json", "runs/*/config.yaml",
    "runs/*/provenance.json",
)  # fmt: skip


def verify(warehouse: UPath, quick: bool) -> dict[str, Any]:
    """Check every file: the number of `files`, of those `without_checksum` (of earlier versions;
    their rows are read), and the `damaged` ones, each with the reason (`why`) and what to do.
    `quick`: a Parquet file on this machine only if it was never checked or has changed since.

    Raises UsageError if there is no warehouse with a run, StorageError.
    """
    run = readable_run(warehouse)
    if not quick:
        forget_checks(warehouse)
    damaged = _left_out(warehouse, run)
    parquet, texts = ([f for p in patterns for f in list_paths(warehouse, p)]
                      for patterns in (_PARQUET, _TEXTS))  # fmt: skip
    num_without = 0
    for file in (file for file in (*parquet, *texts) if str(file) not in damaged):
        try:
            num_without += not _check(file, quick)
        except (ValueError, FlawError) as error:
            damaged[str(file)] = f"{error}; put it back from a copy"
        except FileNotFoundError:  # compacted and deleted meanwhile
            continue
    return {
        "files": len(parquet) + len(texts),
        "without_checksum": num_without,
        "damaged": [{"file": file, "why": why} for file, why in sorted(damaged.items())],
    }


def _left_out(warehouse: UPath, run: str) -> dict[str, str]:
    """The files that reading verbs leave out, or that they cannot do without, and why."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LeftOutWarning)
        try:
            with connect(warehouse, run) as connection:
                return {row["file"]: row["why"] for row in query(connection, "from left_out")}
        except DamagedError as error:
            return {error.file: error.why}


def _check(file: UPath, quick: bool) -> bool:
    """True if the file has a checksum, or `quick` is true of a Parquet file. Raises for one that is
    damaged."""
    if file.suffix != ".parquet":
        content = read(file)
        return without_checksum(content) != content
    if quick:
        read_footer(file)
        return True
    content = read(file)
    read_parquet(content)
    return check_parquet(content)


def verified_lines(found: Mapping[str, Any]) -> Iterator[Part]:
    """A line per damaged file, and the counts."""
    yield from (f"{row['file']}: {row['why']}" for row in found["damaged"])
    checked = f"checked {counted(found['files'], 'file')}"
    without = f", {found['without_checksum']} of them without a checksum, of earlier versions"
    yield checked + (without if found["without_checksum"] else "")


def refuse_damaged(found: Mapping[str, Any]) -> None:
    """Raise AccountingError if some file is damaged."""
    if found["damaged"]:
        raise AccountingError(f"{counted(len(found['damaged']), 'file')} damaged; see above")
