"""Start a local Ray, or join a running one, and query its machines."""

import atexit
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import ray
from ray._private import ray_constants
from ray.data import DataContext

from pipeline.cluster.ray_watch import watch_processes
from pipeline.core.errors import ClusterError, UsageError

_SECONDS_TO_ANSWER = 10.0
_QUIET: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
_STARTS = 3  # attempts to start a local Ray
_RAY_NOT_UP = (RuntimeError, TimeoutError, ConnectionError, ray.exceptions.RaySystemError)


def join(address: str | None) -> None:
    """Connect this process as a driver to the Ray at `address`, unless it is connected already.

    None starts a local Ray; `auto` joins the one this machine is part of. If a Ray process is
    killed later, this process ends with a line and exit code 4. Raises UsageError if there is none
    to join, ClusterError if a local one does not start.
    """
    if not ray.is_initialized():
        with quiet_stderr(), _own_sigterm():
            _init(address)
        # Before Ray's own exit handler, which waits half a second for logs that are not shown.
        atexit.register(ray.shutdown)
        watch_processes()
    _set_up_ray_data()


@contextmanager
def _own_sigterm() -> Iterator[None]:
    """Keep this process's handler of SIGTERM. Ray's would raise SystemExit, perhaps while a library
    holds a lock, and Ray's C++ handler aborts."""
    ray._private.utils.set_sigterm_handler = lambda handler: None
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGTERM))


def _init(address: str | None) -> None:
    if address is None:
        _start()
        return
    try:
        refuse_unreachable(os.environ.get("RAY_ADDRESS", address) if address == "auto" else address)
        ray.init(address=address, **_QUIET)
    except (OSError, ValueError, RuntimeError) as error:
        line = first_line(error)
        raise UsageError(f"cluster.address={address}: no Ray to join: {line}") from None


@contextmanager
def _on_loopback() -> Iterator[None]:
    """Make a Ray that is started here listen on 127.0.0.1 only; its processes inherit the setting.

    This uses Ray's switch for systems without clusters: Ray would replace
    `_node_ip_address="127.0.0.1"` by an address that other machines reach.
    """
    name, before = ray_constants.ENABLE_RAY_CLUSTERS_ENV_VAR, ray_constants.ENABLE_RAY_CLUSTER
    os.environ[name], ray_constants.ENABLE_RAY_CLUSTER = "0", False
    try:
        yield
    finally:
        del os.environ[name]
        ray_constants.ENABLE_RAY_CLUSTER = before


def first_line(error: object) -> str:
    """The first line of an error that is not empty, or else the name of its class."""
    lines = (line.strip() for line in str(error).splitlines())
    return next(filter(None, lines), type(error).__name__)


def _start() -> None:
    """Start a local Ray. Raises ClusterError if it does not come up in three attempts."""
    errors: list[BaseException] = []

    def is_not_up(kind: Any, error: BaseException | None, trace: Any) -> bool:
        # Ray raises a bare Exception if a node does not come up in its 30 seconds, as happens on a
        # loaded machine.
        if error is None or not (kind is Exception or isinstance(error, _RAY_NOT_UP)):
            return False
        errors.append(error)
        return True

    for _ in range(_STARTS):
        with ExitStack() as stack:
            stack.push(is_not_up)
            stack.enter_context(_on_loopback())
            ray.init(address="local", include_dashboard=False, **_QUIET)
            return
        ray.shutdown()  # stop the processes that did start
    raise ClusterError(
        f"Ray did not start on this machine in {_STARTS} attempts ({first_line(errors[-1])}); "
        "end what else keeps it busy, then run the same command to resume"
    )


def refuse_unreachable(address: str) -> None:
    """Raise OSError if nothing listens at HOST:PORT; Ray would retry for many minutes."""
    host, _, port = address.rpartition(":")
    if port.isdecimal():
        socket.create_connection((host, int(port)), _SECONDS_TO_ANSWER).close()


_machines: Callable[[], list[dict[str, Any]]] = ray.nodes  # not annotated by Ray


def nodes() -> list[dict[str, float]]:
    """The total resources of each live machine, by resource name. Call `join` first."""
    return [node["Resources"] for node in _machines() if node["Alive"]]


def is_lost(node_id: str) -> bool:
    """True if Ray has lost the machine, so that a crash there may be the machine's."""
    return any(node["NodeID"] == node_id and not node["Alive"] for node in _machines())


def _set_up_ray_data() -> None:
    context = DataContext.get_current()
    context.enable_progress_bars = False
    context.execution_options.verbose_progress = False
    # Ray Data fails an execution after 30 minutes without an output; a long book takes longer.
    context.execution_no_progress_timeout_s = -1
    # Scale up as soon as every worker is full, as far as there are resources; never scale down
    # while documents wait.
    context.autoscaling_config.actor_pool_util_upscaling_threshold = 1.0
    context.autoscaling_config.actor_pool_util_downscaling_threshold = 0.0
    for name in ("ray.data", "ray"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # errors are raised instead


@contextmanager
def quiet_stderr() -> Iterator[None]:
    """Silence file descriptor 2: Ray's C++ code writes there, past Python's sys.stderr."""
    kept = os.dup(2)
    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
