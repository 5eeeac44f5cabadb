"""`gistmill view --bundle FOLDER`: the pages of a warehouse's runs as files for a web server."""

import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from jobs.config.options import ReadOptions
from jobs.html.chunks import compressed_chunk
from jobs.html.run_page import Chunk, page
from jobs.html.site import Site
from jobs.html.source import Source
from pipeline.core.errors import UsageError
from pipeline.files.processes import part_name
from pipeline.store.sql.connect import run_name

_RUNS = "data/runs.gz"  # which every bundle has


@dataclass(frozen=True)
class Bundle:
    """A written folder, the runs that have a page there, and its size."""

    folder: str
    runs: tuple[str, ...]
    bytes: int


def write_bundle(options: ReadOptions, folder: Path) -> Bundle:
    """Write the pages of all runs, or of the one that the options name. An older bundle is replaced
    once the new one is whole.

    Raises UsageError as `gistmill report` does, for a folder that has other files, and if it cannot
    be written.
    """
    if folder.exists() and not (folder / _RUNS).exists() and (
        not folder.is_dir() or any(folder.iterdir())
    ):  # fmt: skip
        raise UsageError(f"--bundle {folder}: it has other files; name a folder that is new")
    chosen = run_name(options.warehouse, options.run)
    beside = folder.with_name(part_name(folder.name))
    with closing(Site(options, chosen)) as site:
        rows = [row for row in site.runs() if options.run in (None, row["run"])]
    try:
        for row in rows:
            _write_run(
                replace(options, run=row["run"]),
                beside / row["path"],
                "../../" if row["path"] else "",
            )
        (beside / _RUNS).write_bytes(compressed_chunk({"content": rows}))
        if folder.exists():
            shutil.rmtree(folder)
        beside.replace(folder)
    except OSError as error:
        raise UsageError(f"--bundle {folder}: {error.strerror}; write it elsewhere") from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    files = [file for file in folder.rglob("*") if file.is_file()]
    size = sum(file.stat().st_size for file in files)
    return Bundle(str(folder), tuple(row["run"] for row in rows), size)


def _write_run(options: ReadOptions, folder: Path, root: str) -> None:
    """The page of a run and its data."""
    (folder / "data").mkdir(parents=True)
    with closing(Source(options)) as source:
        page(source.run, (), (), "bundle", root).dump(str(folder / "index.html"), encoding="utf-8")
        for name, content in _chunks(source):
            (folder / "data" / f"{name}.gz").write_bytes(content)


def _chunks(source: Source) -> Iterator[Chunk]:
    yield source.first(is_served=False)
    yield from source.chunks()
