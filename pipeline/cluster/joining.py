"""Start a local Ray, or join one that runs."""

import atexit
import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ray
from ray.data import DataContext

from pipeline.errors import UsageError

_SECONDS_TO_ANSWER = 10.0


def join(address: str | None) -> None:
    """Connect this process as a driver to the Ray at `address`, unless it is connected already.

    Null starts a local Ray; `auto` joins the one this machine is part of. Raises UsageError where
    there is none to join.
    """
    if not ray.is_initialized():
        with quiet_stderr():
            _init(address)
        # Before Ray's own at exit, which first waits half a second for logs that nobody is shown.
        atexit.register(ray.shutdown)
    _set_up_ray_data()


def _init(address: str | None) -> None:
    quiet: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    if address is None:
        ray.init(address="local", include_dashboard=False, **quiet)
        return
    try:
        refuse_unreachable(os.environ.get("RAY_ADDRESS", address) if address == "auto" else address)
        ray.init(address=address, **quiet)
    except (OSError, ValueError, RuntimeError) as error:
        line = next(iter(str(error).splitlines()), type(error).__name__)
        raise UsageError(f"cluster.address={address}: no Ray to join: {line}") from None


def refuse_unreachable(address: str) -> None:
    """Raise OSError where nothing listens at HOST:PORT; Ray would retry for many minutes."""
    host, _, port = address.rpartition(":")
    if port.isdecimal():
        socket.create_connection((host, int(port)), _SECONDS_TO_ANSWER).close()


def nodes() -> list[dict[str, float]]:
    """The total resources of each live machine, by name. Call `join` first."""
    found: Any = ray.nodes()  # type: ignore[no-untyped-call]  # not annotated by Ray
    return [node["Resources"] for node in found if node["Alive"]]


def is_lost(node_id: str) -> bool:
    """Whether Ray lost the machine: a crash there may have been the machine's."""
    found: Any = ray.nodes()  # type: ignore[no-untyped-call]  # not annotated by Ray
    return any(node["NodeID"] == node_id and not node["Alive"] for node in found)


def _set_up_ray_data() -> None:
    context = DataContext.get_current()
    context.enable_progress_bars = False
    context.execution_options.verbose_progress = False
    # Ray Data fails an execution after 30 minutes without an output; a long book takes longer.
    context.execution_no_progress_timeout_s = -1
    # Scale up as soon as every worker holds as many documents as it may, as far as there are
    # resources; never scale down while documents wait.
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
