"""Start a local Ray, or join a running one; watch its processes, and query its machines."""

import atexit
import errno
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import ray
from ray._private import ray_constants
from ray._private.worker import global_worker

from pipeline.core.errors import ClusterError, UsageError, contained, end_process

_SECONDS_TO_ANSWER = 10.0
_SECONDS_BETWEEN_LOOKS = 1.0
_QUIET: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
_STARTS = 3  # attempts to start a local Ray


def join(address: str | None) -> None:
    """Connect this process as a driver to the Ray at `address`, unless it is connected already.

    None starts a local Ray; `auto` joins the one this machine is part of. If a Ray process is
    killed later, this process ends with a line and exit code 4. Raises UsageError if there is none
    to join, ClusterError if a local one does not start.
    """
    if not ray.is_initialized():
        # Ray's handler of SIGTERM would raise SystemExit, perhaps while a library holds a lock, and
        # that of its C++ code aborts.
        ray._private.utils.set_sigterm_handler = lambda handler: None
        with quiet_stderr():
            try:
                if address is None:
                    _start()
                else:
                    _join_running(address)
            finally:  # our handler in place of that of Ray's C++ code
                if threading.current_thread() is threading.main_thread():
                    signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGTERM))
        # Before Ray's own exit handler, which waits half a second for logs that are not shown.
        atexit.register(ray.shutdown)
        watch_processes()
    for name in ("ray.data", "ray"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # errors are raised instead


def _join_running(address: str) -> None:
    try:
        refuse_unreachable(os.environ.get("RAY_ADDRESS", address) if address == "auto" else address)
        ray.init(address=address, **_QUIET)
    except (OSError, ValueError, RuntimeError) as error:
        line = first_line(error)
        raise UsageError(f"cluster.address={address}: no Ray to join: {line}") from None


def _start() -> None:
    """Start a local Ray. Raises ClusterError if it does not come up in three attempts."""
    # Ray's switch for systems without clusters, which its processes inherit, makes Ray listen on
    # 127.0.0.1 only. Ray would replace a given `_node_ip_address` by one that others can reach.
    name, before = ray_constants.ENABLE_RAY_CLUSTERS_ENV_VAR, ray_constants.ENABLE_RAY_CLUSTER
    os.environ[name], ray_constants.ENABLE_RAY_CLUSTER = "0", False
    try:
        for _ in range(_STARTS):
            # Ray raises a bare Exception if a node does not come up in its 30 seconds, as happens
            # on a loaded machine.
            with contained() as raised:
                ray.init(address="local", include_dashboard=False, **_QUIET)
                return
            ray.shutdown()  # stop the processes that did start
    finally:
        del os.environ[name]
        ray_constants.ENABLE_RAY_CLUSTER = before
    raise ClusterError(
        f"Ray did not start on this machine in {_STARTS} attempts ({first_line(raised.error)}); "
        "end what else keeps it busy, then run the same command to resume"
    )


def first_line(error: object) -> str:
    """The first line of an error that is not empty, or else the name of its class."""
    lines = (line.strip() for line in str(error).splitlines())
    return next(filter(None, lines), type(error).__name__)


def refuse_unreachable(address: str) -> None:
    """Raise OSError if nothing listens at HOST:PORT; Ray would retry for many minutes."""
    host, _, port = address.rpartition(":")
    if port.isdecimal():
        socket.create_connection((host, int(port)), _SECONDS_TO_ANSWER).close()


def watch_processes() -> None:
    """Start a thread that ends this process with a line once a process of the joined local Ray, or
    this machine's raylet of another Ray, has ended; until `ray.shutdown()`. An exception would
    not do: the main thread may wait inside Ray, which ends this process silently."""
    worker: Any = global_worker
    joined = worker.node

    def watch() -> None:
        while worker.node is joined:
            dead = [name for name, _ in joined.dead_processes()]
            # Without a free file descriptor for the socket the next look tries again.
            with suppress(OSError), socket.socket(socket.AF_UNIX) as end:
                refused = end.connect_ex(joined.raylet_socket_name)
                dead += ["raylet"] if refused in (errno.ECONNREFUSED, errno.ENOENT) else []
            if dead and worker.node is joined:  # or a shutdown has ended it
                end_process(f"Ray's {dead[0]} was killed; run the same command to resume")
            time.sleep(_SECONDS_BETWEEN_LOOKS)

    threading.Thread(target=watch, daemon=True).start()


_machines: Callable[[], list[dict[str, Any]]] = ray.nodes  # not annotated by Ray


def nodes() -> list[dict[str, float]]:
    """The total resources of each live machine, by resource name. Call `join` first."""
    return [node["Resources"] for node in _machines() if node["Alive"]]


def is_lost(node_id: str) -> bool:
    """True if Ray has lost the machine, so that a crash there may be the machine's."""
    return any(node["NodeID"] == node_id and not node["Alive"] for node in _machines())


@contextmanager
def quiet_stderr() -> Iterator[None]:
    """Silence file descriptor 2: Ray's C++ code writes there, past Python's sys.stderr."""
    stderr = os.dup(2)
    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
