"""A server on loopback for tests, by a function."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


@contextmanager
def serving(answer: Callable[[str], tuple[int, bytes] | None]) -> Iterator[str]:
    """The address of a server that replies to a path with this status and content, or, for None,
    hangs up; until the context ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if reply := answer(self.path):
                self.send_response(reply[0])
                self.end_headers()
                self.wfile.write(reply[1])

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
