"""A Ray of our own on this machine, or the one this machine is part of."""

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
    """Be a driver of the Ray at `address`: null starts one of our own, `auto` is the one this
    machine is part of. Where this process has joined one, it stays there.

    Raises UsageError where there is none to join.
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
    """Raise OSError where nothing listens at HOST:PORT: Ray itself would try for many minutes."""
    host, _, port = address.rpartition(":")
    if port.isdecimal():
        socket.create_connection((host, int(port)), _SECONDS_TO_ANSWER).close()


def nodes() -> list[dict[str, float]]:
    """The resources of each machine that is alive. A Ray has been joined."""
    told: Any = ray.nodes()  # type: ignore[no-untyped-call]  # Ray says no types here
    return [node["Resources"] for node in told if node["Alive"]]


def _set_up_ray_data() -> None:
    context = DataContext.get_current()
    context.enable_progress_bars = False
    context.execution_options.verbose_progress = False
    # Ray Data would give up after 30 minutes without an output; a long book takes longer.
    context.execution_no_progress_timeout_s = -1
    # A pool whose workers all have as many documents as they may hold grows by what there is room
    # for; it never shrinks while documents wait.
    context.autoscaling_config.actor_pool_util_upscaling_threshold = 1.0
    context.autoscaling_config.actor_pool_util_downscaling_threshold = 0.0
    for name in ("ray.data", "ray"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what goes wrong is raised here


@contextmanager
def quiet_stderr() -> Iterator[None]:
    """Ray's C++ announces its log level on file descriptor 2, past Python's reach."""
    kept = os.dup(2)
    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
