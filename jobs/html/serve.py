"""`gistmill view`: the pages of a warehouse's runs, served to this machine alone: the chosen run's
at the root, the others' in run/NAME/."""

import secrets
import signal
import socket
import sys
from contextlib import closing, suppress
from dataclasses import replace
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import BoundedSemaphore, Lock
from typing import Any
from urllib.parse import quote, unquote

from jobs.compare.compare import RunValues
from jobs.config.options import ReadOptions
from jobs.html.run_page import compressed_chunk, page
from jobs.html.source import Source
from jobs.output.print_tables import print_found
from jobs.run.progress import progress_line
from jobs.warehouse.listing import listing
from pipeline.core.errors import CommandError, UsageError, redacted
from pipeline.files.storage import filesystem_errors
from pipeline.store.runs.run_folder import RunFolder, planned_files
from pipeline.store.sql.connect import run_name
from pipeline.store.sql.connection import DatabaseError

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


_HOST = "127.0.0.1"
_MOST_THREADS = 32
_SECONDS_IDLE = 5.0  # after which a connection that asks nothing is closed
_MISTAKABLE = ("by", "where", "rater", "columns", "names", "plugins")  # options
_NAMES = (_HOST, "localhost")  # a request for another host name is refused (DNS rebinding)


def serve(options: ReadOptions, as_json: bool) -> None:
    """Serve the pages of all runs until Ctrl-C, and print the address of the chosen run's page.

    Rows are read when the page first asks for them, but earlier if an option may be mistaken. A
    random part of the address keeps other users of this machine from guessing it, and an old page
    from getting the data of a new start.

    Raises UsageError as `gistmill report` does, and if the port cannot be opened.
    """
    run = run_name(options.warehouse, options.run)
    with closing(Site(options, run)) as site:
        if any(getattr(options, name) for name in _MISTAKABLE):
            site.open(run)
        folder = f"/{secrets.token_urlsafe(12)}/"
        server = listening(options.port, folder, site)
        with closing(server.socket):
            signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's & ignores it
            try:
                address = f"http://{_HOST}:{server.server_port}{folder}"
                line = f"run {run}: {address} (Ctrl-C ends it)"
                print_found({"address": address, "run": run}, lambda _: [line], as_json)
                sys.stdout.flush()
                server.serve_forever()
            except KeyboardInterrupt:
                return


def listening(port: int, folder: str, pages: Site) -> ThreadingHTTPServer:
    """A server of the pages below `folder`, /.../, not yet started. Raises UsageError."""

    class Handler(_Handler):
        site = pages
        page_folder = folder

    try:
        return _Server((_HOST, port), Handler)
    except OSError as error:
        raise UsageError(f"port={port}: {error.strerror}; give another, or 0 for any") from None


def _reading_errors() -> tuple[type[Exception], ...]:
    return (CommandError, DatabaseError, *filesystem_errors())


class _Server(ThreadingHTTPServer):
    """Has a thread per connection, up to a limit; further connections wait."""

    daemon_threads = True
    address_family = socket.AF_INET
    request_queue_size = 128

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._free = BoundedSemaphore(_MOST_THREADS)

    def process_request(self, *given: Any) -> None:
        self._free.acquire()
        super().process_request(*given)

    def process_request_thread(self, *given: Any) -> None:
        try:
            super().process_request_thread(*given)
        finally:
            self._free.release()


class _Handler(BaseHTTPRequestHandler):
    """Answers GET of paths below page_folder by the site; anything else is an error."""

    timeout = _SECONDS_IDLE
    site: Site
    page_folder: str  # /.../

    def handle(self) -> None:
        with suppress(ConnectionError):  # the browser has gone
            super().handle()

    def do_GET(self) -> None:
        host = (self.headers["Host"] or "").partition(":")[0].lower()
        if host not in _NAMES:
            self.send_error(HTTPStatus.FORBIDDEN)
        elif self.path.startswith(self.page_folder):
            self._send_found(self.path.removeprefix(self.page_folder))
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def _send_found(self, path: str) -> None:
        try:
            found = self.site.get(path)
        except _reading_errors() as error:
            why = redacted(" ".join(str(error).split())).encode(errors="replace")
            self._send(HTTPStatus.INTERNAL_SERVER_ERROR, "text/plain; charset=utf-8", why)
            return
        if found is None:
            self.send_error(HTTPStatus.NOT_FOUND)
        else:
            kind, content = found
            encoding = {"Content-Encoding": "gzip"} if kind == GZIP else {}
            self._send(HTTPStatus.OK, kind, content, encoding)

    def _send(
        self, status: HTTPStatus, kind: str, content: bytes, headers: dict[str, str] | None = None
    ) -> None:
        self.send_response(status)
        kept = {"Content-Type": kind, "Content-Length": str(len(content)),
                "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}  # fmt: skip
        for name, value in {**kept, **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing for a request."""
