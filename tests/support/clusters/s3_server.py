"""An S3 server on loopback, and what reaches it from the environment."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from socket import SHUT_RDWR
from typing import Any, Literal

import boto3
import requests
from moto.server import ThreadedMotoServer
from s3fs import S3FileSystem

BUCKET = "nights"
How = Literal["500", "503", "slow down", "reset", "hang", "lost", "torn"]
_ERRORS = {
    "500": ("500 Internal Server Error", "InternalError"),
    "503": ("503 Service Unavailable", "ServiceUnavailable"),
    "slow down": ("503 Slow Down", "SlowDown"),
}


class Outage:
    """What the server does instead of answering: 500, 503, slow down: says so; reset: hangs up;
    hang: waits `pause` seconds first; lost: does what is asked, and hangs up before it says so;
    torn: takes half of what is sent, and hangs up."""

    def __init__(self, app: Callable[..., Any]) -> None:
        self._app, self._lock = app, threading.Lock()
        self.pause = 1.0
        self.end()

    def begin(
        self, how: How, times: int = 1_000_000, seconds: float = 1e9, method: str = ""
    ) -> None:
        """Refuse so many requests (of one method), for so long at most."""
        with self._lock:
            self._how, self._left, self._method = how, times, method
            self._until, self.num_refused = time.monotonic() + seconds, 0

    def end(self) -> None:
        self.begin("503", times=0)

    def __call__(self, environ: Any, start: Callable[..., Any]) -> Any:
        if not self._takes(environ):
            return self._app(environ, start)
        size = int(environ.get("CONTENT_LENGTH") or 0)
        if self._how in _ERRORS:
            status, code = _ERRORS[self._how]
            said = f"<Error><Code>{code}</Code><Message>Again</Message></Error>".encode()
            environ["wsgi.input"].read(size)
            start(status, [("Content-Length", str(len(said)))])
            return [said]
        if self._how == "torn":
            environ["wsgi.input"].read(size // 2)
        if self._how == "hang":
            time.sleep(self.pause)
            return self._app(environ, start)
        if self._how == "lost":
            b"".join(self._app(environ, lambda *_: None))
        environ["werkzeug.socket"].shutdown(SHUT_RDWR)
        return []

    def _takes(self, environ: Any) -> bool:
        is_meant = self._method in ("", environ["REQUEST_METHOD"])
        with self._lock:
            if not is_meant or self._left <= 0 or time.monotonic() > self._until:
                return False
            self._left -= 1
            self.num_refused += 1
            return True


@contextmanager
def flaky_s3_server() -> Iterator[tuple[dict[str, str], Outage]]:
    """A server with one empty bucket: the environment variables that name it, and what makes it
    refuse."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    assert server._server is not None
    outage = Outage(server._server.app)
    server._server.app = outage
    address = f"http://127.0.0.1:{server.get_host_and_port()[1]}"
    environment = {"AWS_ENDPOINT_URL": address, "AWS_ACCESS_KEY_ID": "a",
                   "AWS_SECRET_ACCESS_KEY": "b", "AWS_DEFAULT_REGION": "us-east-1"}  # fmt: skip
    try:
        # All servers of a process share their buckets.
        requests.post(f"{address}/moto-api/reset", timeout=60)
        client(environment).create_bucket(Bucket=BUCKET)
        S3FileSystem.clear_instance_cache()  # of a server before this one, in the same process
        yield environment, outage
    finally:
        server.stop()


@contextmanager
def s3_server() -> Iterator[dict[str, str]]:
    """One that never refuses."""
    with flaky_s3_server() as (environment, _):
        yield environment


def client(environment: dict[str, str]) -> Any:
    """What reads and writes the bucket without any of our code."""
    return boto3.client(
        "s3",
        endpoint_url=environment["AWS_ENDPOINT_URL"],
        aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
        region_name=environment["AWS_DEFAULT_REGION"],
    )


def names(environment: dict[str, str], prefix: str = "") -> list[str]:
    """The keys in the bucket."""
    pages = client(environment).get_paginator("list_objects_v2")
    listed = pages.paginate(Bucket=BUCKET, Prefix=prefix)
    return [entry["Key"] for page in listed for entry in page.get("Contents", [])]
