"""`gistmill view --bundle FOLDER`: the pages of a warehouse's runs as files for a web server."""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jobs.compare.paired_values import RunValues
from jobs.config.options import ReadOptions
from jobs.html.chunks import compressed_chunk
from jobs.html.run_page import Chunk, page
from jobs.html.site import Site
from jobs.html.source import Source
from pipeline.core.errors import CommandError, UsageError
from pipeline.files.place import as_path, delete_abandoned
from pipeline.files.processes import part_name
from pipeline.store.sql.connect import run_name

_RUNS = "data/runs.gz"  # which every bundle has
_MOST_COMPARED = 8  # runs, the newest ones, with which each is compared
_WRITTEN = ("index.html", "run", "data")  # all that a bundle consists of


@dataclass(frozen=True)
class Bundle:
    """A written folder, the runs that have a page there, its size, and the reasons by the runs that
    were left out."""

    folder: str
    runs: tuple[str, ...]
    bytes: int
    left_out: dict[str, str]


def write_bundle(options: ReadOptions, folder: Path) -> Bundle:
    """Write the pages of all runs, or of the one that the options name. An older bundle is replaced
    once the new one is whole; other files of its folder stay. A run that `gistmill report` refuses
    with the options is left out.

    Raises UsageError as `gistmill report` does for the run that the options name or if it refuses
    all, for a folder that has other files and no bundle, and if it cannot be written.
    """
    run_name(options.warehouse, options.run)  # refuses one that is not there
    try:
        place = _checked(folder)
        beside = place.with_name(part_name(place.name))
        try:
            rows, left_out = _write_runs(options, beside)
            _replace(place, beside)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
        size = sum(_size(place / name) for name in _WRITTEN)
    except OSError as error:
        why = error.strerror or str(error)
        raise UsageError(f"--bundle {folder}: {why}; write it elsewhere") from None
    return Bundle(str(folder), tuple(row["run"] for row in rows), size, left_out)


def _checked(folder: Path) -> Path:
    """Where the folder lies, also by a symbolic link. Raises UsageError."""
    place = Path(os.path.realpath(folder))
    if place.exists() and not (place / _RUNS).exists() and (
        not place.is_dir() or any(place.iterdir())
    ):  # fmt: skip
        raise UsageError(f"--bundle {folder}: it has other files; name a folder that is new")
    delete_abandoned(as_path(place))
    return place


def _write_runs(options: ReadOptions, beside: Path) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Write a page per run, the first at the root; the rows of those runs, and why others are left
    out. Raises the first reason if none is written."""
    chosen = run_name(options.warehouse, options.run)
    with closing(Site(options, chosen)) as site:
        found = [row for row in site.runs() if options.run in (None, row["run"])]
    rows: list[dict[str, Any]] = []
    left_out: dict[str, CommandError] = {}
    with ExitStack() as stack:
        newest = _values(stack, options, [row["run"] for row in found])
        for row in sorted(found, key=lambda row: row["run"] != chosen):
            run, path = row["run"], row["path"] if rows else ""
            others = [values for name, values in newest.items() if name != run]
            try:
                _write_run(replace(options, run=run), beside / path, path, others)
                rows.append({**row, "path": path, "is_compared": run in newest})
            except CommandError as error:
                left_out[run] = error
                shutil.rmtree(beside / path)
    if not rows:
        raise next(iter(left_out.values()))
    (beside / _RUNS).write_bytes(compressed_chunk({"content": rows}))
    return rows, {run: str(error) for run, error in left_out.items()}


def _values(stack: ExitStack, options: ReadOptions, runs: Sequence[str]) -> dict[str, RunValues]:
    """The values of the newest runs; those are the first."""
    found = {}
    for run in runs[:_MOST_COMPARED] if len(runs) > 1 else ():
        with suppress(CommandError):  # its page is left out, too
            found[run] = stack.enter_context(RunValues.opened(replace(options, run=run)))
    return found


def _replace(place: Path, beside: Path) -> None:
    """Move what a bundle consists of into its folder, and what it replaces out of it."""
    place.mkdir(exist_ok=True)
    for name in _WRITTEN:
        if (place / name).exists():
            (place / name).replace(beside / f"{name}.replaced")
        if (beside / name).exists():
            (beside / name).replace(place / name)


def _size(path: Path) -> int:
    """The bytes of a file, or of all files in a folder."""
    files = [file for file in (path, *path.rglob("*")) if file.is_file()]
    return sum(file.stat().st_size for file in files)


def _write_run(options: ReadOptions, folder: Path, path: str, others: Sequence[RunValues]) -> None:
    """The page of a run and its data, compared with the `others`. `path`: of its folder, from the
    root."""
    (folder / "data").mkdir(parents=True)
    root = "../../" if path else ""
    with closing(Source(options)) as source:
        page(source.run, (), (), "bundle", root).dump(str(folder / "index.html"), encoding="utf-8")
        for name, content in _chunks(source, others):
            (folder / "data" / f"{name}.gz").write_bytes(content)


def _chunks(source: Source, others: Sequence[RunValues]) -> Iterator[Chunk]:
    yield source.first(is_served=False)
    yield from source.chunks()
    for other in others:
        yield from source.run_chunks(other)
