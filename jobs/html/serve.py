"""`gistmill view`: the pages of a warehouse's runs, served to this machine alone."""

import secrets
import signal
import socket
import sys
from contextlib import closing, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import BoundedSemaphore
from typing import Any

from jobs.config.options import ReadOptions
from jobs.html.site import GZIP, Site
from jobs.output.print_tables import print_found
from pipeline.core.errors import CommandError, UsageError, redacted
from pipeline.files.storage import filesystem_errors
from pipeline.store.sql.connect import run_name
from pipeline.store.sql.connection import DatabaseError

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
