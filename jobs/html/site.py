"""The pages of a warehouse's runs: the chosen run's at the root, the others' in run/NAME/."""

from contextlib import suppress
from dataclasses import replace
from threading import Lock
from typing import Any
from urllib.parse import quote, unquote

from jobs.compare.compare import RunValues
from jobs.config.options import ReadOptions
from jobs.html.run_page import compressed_chunk, page
from jobs.html.source import Source
from jobs.run.progress import progress_line
from jobs.warehouse.ls import listing
from pipeline.core.errors import UsageError
from pipeline.store.runs.planned_units import planned_files
from pipeline.store.runs.run_folder import RunFolder

HTML, GZIP = "text/html; charset=utf-8", "application/json"
Found = tuple[str, bytes]
"""A content type, and the content: HTML, or JSON in gzip."""


class Site:
    """The pages of all runs; a run is read when its data is first asked for. Safe for threads.

    Requests for data raise UsageError where `gistmill report` does.
    """

    def __init__(self, options: ReadOptions, run: str) -> None:
        self._options, self._chosen = options, run
        self._sources: dict[str, Source] = {}
        self._lock = Lock()

    def close(self) -> None:
        for source in self._sources.values():
            source.close()

    def get(self, path: str) -> Found | None:
        """The type and content at a path below the root; None if there is none."""
        run, root, rest = self._chosen, "", path
        if path.startswith("run/"):
            name, slash, rest = path.removeprefix("run/").partition("/")
            run, root = unquote(name), "../../"
            if not slash or run not in self._names():
                return None
        if not rest:
            return HTML, "".join(page(run, root=root)).encode()
        return self._data(run, rest.removeprefix("data/")) if rest[:5] == "data/" else None

    def _runs(self) -> list[dict[str, Any]]:
        def path(run: str) -> str:
            return "" if run == self._chosen else f"run/{quote(run, safe='')}/"

        rows = listing(self._options.warehouse, None)["runs"]
        return [{**row, "path": path(row["run"])} for row in rows]

    def open(self, run: str) -> Source:
        """The data of a run, read at its first use. Raises UsageError."""
        with self._lock:
            return self._opened(run)

    def _opened(self, run: str) -> Source:
        if run not in self._sources:
            self._sources[run] = Source(replace(self._options, run=run))
        return self._sources[run]

    def _data(self, run: str, name: str) -> Found | None:
        if name == "runs":
            return GZIP, compressed_chunk({"content": self._runs()})
        if name == "state":
            return GZIP, compressed_chunk({"content": self._state(run)})
        with self._lock:
            if name == "fresh":  # read the rows again: the run may have written more
                if run in self._sources:
                    self._sources.pop(run).close()
                return GZIP, compressed_chunk({"content": self._opened(run).run})
            if name.startswith("run-"):
                return self._against_run(run, name)
            found = self._opened(run).chunk(name)
        return (GZIP, found) if found is not None else None

    def _state(self, run: str) -> dict[str, Any]:
        """From the run's files alone."""
        progress, workers = RunFolder(self._options.warehouse, run).at_work()
        text = progress_line(progress) if progress else ""
        return {"is_running": bool(progress or workers), "text": text, "workers": len(workers)}

    def _against_run(self, run: str, name: str) -> Found | None:
        """`name` is run-NUMBER-NAME: the index of a measure, and the other run's name."""
        _, number, other = [*name.split("-", 2), "", ""][:3]
        source = self._opened(run)
        measures = {str(number) for number in range(len(source.scores))}
        if number not in measures or unquote(other) not in self._names():
            return None
        options = replace(self._options, run=unquote(other))
        with suppress(UsageError), RunValues.opened(options) as values:
            return GZIP, source.against_run(int(number), values)
        return GZIP, compressed_chunk({"content": []})

    def _names(self) -> set[str]:
        return {file.parent.name for file in planned_files(self._options.warehouse)}
