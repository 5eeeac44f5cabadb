"""`gistmill view`: the pages of a warehouse's runs, served to this machine alone: the chosen run's
at the root, the others' in run/NAME/."""

import secrets
import signal
import sys
from contextlib import closing, suppress
from dataclasses import replace
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from typing import Any
from urllib.parse import quote, unquote

from jobs.config.options import ReadOptions
from jobs.html.run_page import Source, compressed_chunk, page
from jobs.output.print_tables import print_found
from jobs.run.progress import progress_line
from jobs.warehouse.listing import listing
from pipeline.core.errors import CommandError, UsageError, redacted
from pipeline.files.storage import filesystem_errors
from pipeline.store.runs.run_folder import RunFolder, planned_files
from pipeline.store.sql.connect import run_name
from pipeline.store.sql.connection import DatabaseError

HTML, JSON = "text/html; charset=utf-8", "application/json"
Content = tuple[str, bytes]
"""A content type, and the content: HTML, or JSON in gzip."""


_HOST = "127.0.0.1"
_SECONDS_IDLE = 5.0  # after which a connection that asks nothing is closed


class Site:
    """The pages of all runs, each read when its data is first asked for. Safe for threads."""

    def __init__(self, options: ReadOptions, run: str) -> None:
        self._options, self._chosen = options, run
        self._sources: dict[str, Source] = {}
        self._lock = Lock()

    def close(self) -> None:
        for source in self._sources.values():
            source.close()

    def get(self, path: str) -> Content | None:
        """The type and content at a path below the root; None if there is none."""
        run, root, rest = self._chosen, "", path
        if path.startswith("run/"):
            name, slash, rest = path.removeprefix("run/").partition("/")
            run, root = unquote(name), "../../"
            files = planned_files(self._options.warehouse)
            if not slash or run not in {file.parent.name for file in files}:
                return None
        if not rest:
            return HTML, "".join(page(run, root=root)).encode()
        return self._data(run, rest.removeprefix("data/")) if rest.startswith("data/") else None

    def open(self, run: str) -> Source:
        """The data of a run, read at its first use. Raises UsageError."""
        if run not in self._sources:
            self._sources[run] = Source(replace(self._options, run=run))
        return self._sources[run]

    def _data(self, run: str, name: str) -> Content | None:
        content: Any
        if name == "runs":
            rows = listing(self._options.warehouse, None)["runs"]
            path = {row["run"]: f"run/{quote(row['run'], safe='')}/" for row in rows}
            path[self._chosen] = ""
            content = [{**row, "path": path[row["run"]]} for row in rows]
            return JSON, compressed_chunk({"content": content})
        if name == "state":  # from the run's files alone
            progress, workers = RunFolder(self._options.warehouse, run).at_work()
            content = {"is_running": bool(progress or workers), "workers": len(workers),
                       "text": progress_line(progress) if progress else ""}  # fmt: skip
            return JSON, compressed_chunk({"content": content})
        with self._lock:
            if name == "fresh":  # read the rows again: the run may have written more
                if run in self._sources:
                    self._sources.pop(run).close()
                return JSON, compressed_chunk({"content": self.open(run).run})
            chunk = self.open(run).chunk(name)
        return (JSON, chunk) if chunk is not None else None


def serve(options: ReadOptions) -> None:
    """Serve the pages of all runs until Ctrl-C, and print the address of the chosen run's page.

    A random part of the address keeps other users of this machine, and pages of other sites, from
    guessing it. Raises UsageError as `gistmill report` does, and if the port cannot be opened.
    """
    run = run_name(options.warehouse, options.run)
    with closing(Site(options, run)) as site:
        site.open(run)

        class Handler(_Handler):
            pages, folder = site, f"/{secrets.token_urlsafe(12)}/"

        try:
            server = ThreadingHTTPServer((_HOST, options.port), Handler)
        except OSError as error:
            why = f"{error.strerror}; give another, or 0 for any"
            raise UsageError(f"port={options.port}: {why}") from None
        with closing(server.socket):
            signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's & ignores it
            try:
                address = f"http://{_HOST}:{server.server_port}{Handler.folder}"
                line = f"run {run}: {address} (Ctrl-C ends it)"
                print_found({"address": address, "run": run}, lambda _: [line], options.as_json)
                sys.stdout.flush()
                server.serve_forever()
            except KeyboardInterrupt:
                return


class _Handler(BaseHTTPRequestHandler):
    """Answers GET of paths below `folder` by the pages; anything else is an error."""

    timeout = _SECONDS_IDLE
    pages: Site
    folder: str  # /.../

    def handle(self) -> None:
        with suppress(ConnectionError):  # the browser has gone
            super().handle()

    def do_GET(self) -> None:
        if not self.path.startswith(self.folder):
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        errors: tuple[type[Exception], ...] = (CommandError, DatabaseError, *filesystem_errors())
        try:
            content = self.pages.get(self.path.removeprefix(self.folder))
        except errors as error:
            why = redacted(" ".join(str(error).split())).encode(errors="replace")
            self._send(HTTPStatus.INTERNAL_SERVER_ERROR, "text/plain; charset=utf-8", why)
            return
        if content is None:
            self.send_error(HTTPStatus.NOT_FOUND)
        else:
            self._send(HTTPStatus.OK, *content)

    def _send(self, status: HTTPStatus, kind: str, content: bytes) -> None:
        self.send_response(status)
        headers = {"Content-Type": kind, "Content-Length": str(len(content)),
                   "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}  # fmt: skip
        if kind == JSON:
            headers["Content-Encoding"] = "gzip"
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing for a request."""
