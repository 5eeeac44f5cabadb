"""`gistmill view`: the page of a run, served from the warehouse to this machine alone."""

import secrets
import signal
import socket
from collections.abc import Callable
from contextlib import closing, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import BoundedSemaphore, Lock
from typing import Any

from jobs.config.options import ReadOptions
from jobs.html.run_page import page
from jobs.html.source import Source
from pipeline.core.errors import CommandError, UsageError

_HOST = "127.0.0.1"
_MOST_THREADS = 32
_SECONDS_IDLE = 5.0  # after which a connection that asks nothing is closed
_NAMES = (_HOST, "localhost")  # a request for another host name is refused (DNS rebinding)


def serve(options: ReadOptions, started: Callable[[str, Source], None]) -> None:
    """Serve the page of a run until Ctrl-C; `started` is called with its address. A part of the
    address is random: other users of this machine cannot guess it, and a page that was opened
    before does not get the data of another run.

    Raises UsageError as `gistmill report` does, and if the port cannot be opened.
    """
    with closing(Source(options)) as source:
        html = "".join(page(source.run, (), (), served=True)).encode()
        folder = f"/{secrets.token_urlsafe(12)}/"
        server = _listening(options.port, folder, source, html)
        with closing(server.socket):
            signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's & ignores it
            try:
                started(f"http://{_HOST}:{server.server_port}{folder}", source)
                server.serve_forever()
            except KeyboardInterrupt:
                return


def _listening(port: int, folder: str, source: Source, html: bytes) -> ThreadingHTTPServer:
    lock = Lock()

    class Handler(_Handler):
        def content(self, name: str) -> bytes | None:
            with lock:
                return source.chunk(name)

        page_folder = folder
        html_page = html

    try:
        return _Server((_HOST, port), Handler)
    except OSError as error:
        raise UsageError(f"port={port}: {error.strerror}; give another, or 0 for any") from None


class _Server(ThreadingHTTPServer):
    """Has a thread per connection, up to a limit; further ones wait."""

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
    """GET FOLDER is the page, GET FOLDERdata/NAME one of its chunks; there is nothing else."""

    timeout = _SECONDS_IDLE
    page_folder: str  # /.../
    html_page: bytes

    def content(self, name: str) -> bytes | None:
        raise NotImplementedError

    def handle(self) -> None:
        with suppress(ConnectionError):  # the browser has gone
            super().handle()

    def do_GET(self) -> None:
        host = (self.headers["Host"] or "").partition(":")[0].lower()
        data = f"{self.page_folder}data/"
        if host not in _NAMES:
            self.send_error(HTTPStatus.FORBIDDEN)
        elif self.path == self.page_folder:
            self._send(HTTPStatus.OK, "text/html; charset=utf-8", self.html_page)
        elif self.path.startswith(data):
            self._send_chunk(self.path.removeprefix(data))
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def _send_chunk(self, name: str) -> None:
        """Send a chunk, or in one line the reason why it cannot be read."""
        try:
            found = self.content(name)
        except CommandError as error:
            why = str(error).encode(errors="replace")
            self._send(HTTPStatus.INTERNAL_SERVER_ERROR, "text/plain; charset=utf-8", why)
            return
        if found is None:
            self.send_error(HTTPStatus.NOT_FOUND)
        else:
            self._send(HTTPStatus.OK, "application/json", found, {"Content-Encoding": "gzip"})

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
