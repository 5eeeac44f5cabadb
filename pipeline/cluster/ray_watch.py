"""Watches over Ray's own processes, without which the driver would end in silence."""

import errno
import socket
import threading
import time
from contextlib import suppress
from typing import Any

from ray._private.worker import global_worker

from pipeline.core.errors import end_process

_SECONDS_BETWEEN_LOOKS = 1.0


def watch_processes() -> None:
    """End this process with a line once a process of the local Ray that it has joined, or this
    machine's raylet of another, has ended; until `ray.shutdown()`, in a thread.

    An error could not be raised: the main thread may wait inside Ray for one that is gone, until
    Ray's own code ends the process without a word.
    """
    threading.Thread(target=_watch, args=(global_worker.node,), daemon=True).start()


def _watch(node: Any) -> None:
    while global_worker.node is node:
        dead = _dead(node)
        if dead and global_worker.node is node:  # else a shutdown has ended it
            end_process(f"Ray's {dead} was killed; run the same command to resume")
        time.sleep(_SECONDS_BETWEEN_LOOKS)


def _dead(node: Any) -> str:
    """The name of a process that has ended; empty if there is none."""
    for name, _ in node.dead_processes():
        return str(name)
    # Without a free file descriptor for the socket there is an OSError: it is seen at another look.
    with suppress(OSError), socket.socket(socket.AF_UNIX) as end:
        refused = end.connect_ex(node.raylet_socket_name)
        return "raylet" if refused in (errno.ECONNREFUSED, errno.ENOENT) else ""
    return ""
