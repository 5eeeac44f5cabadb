"""Watch Ray: its own processes, without which the driver would end silently, and workers that die
while starting, which Ray would restart for ever."""

import errno
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from ray._private.state import state
from ray._private.worker import global_worker

from pipeline.core.errors import EngineError, end_process

_MOST_RESTARTS = 10  # of a worker that was never up between them
_OUTPUT = "worker-*.err"
_OF_RAY = (":job_id:", ":actor_name:", ":task_name:")  # lines that Ray writes there itself
_SECONDS_BETWEEN_LOOKS = 1.0


def watch_processes() -> None:
    """Start a thread that ends this process with a line once a process of the joined local Ray, or
    this machine's raylet of another Ray, has ended; until `ray.shutdown()`.

    An exception would not do: the main thread may wait inside Ray for the dead process, until Ray's
    own code ends this process silently.
    """
    threading.Thread(target=_watch, args=(global_worker.node,), daemon=True).start()


def _watch(node: Any) -> None:
    while global_worker.node is node:
        dead = _dead(node)
        if dead and global_worker.node is node:  # or a shutdown has ended it
            end_process(f"Ray's {dead} was killed; run the same command to resume")
        time.sleep(_SECONDS_BETWEEN_LOOKS)


def _dead(node: Any) -> str:
    """The name of a process that has ended; "" if there is none."""
    for name, _ in node.dead_processes():
        return str(name)
    # Without a free file descriptor for the socket there is an OSError: the next look tries again.
    with suppress(OSError), socket.socket(socket.AF_UNIX) as end:
        refused = end.connect_ex(node.raylet_socket_name)
        return "raylet" if refused in (errno.ECONNREFUSED, errno.ENOENT) else ""
    return ""


class RayWatch:
    """Watches the workers of the Ray that this process has joined."""

    def __init__(self) -> None:
        self._restarts: dict[str, int] = {}  # by worker that is not up: before it went down

    def look(self) -> EngineError | None:
        """The error for a worker that dies again and again before it has started, if any."""
        table: Any = state.actor_table(None, global_worker.current_job_id, "RESTARTING")
        restarts = {worker: row["NumRestarts"] for worker, row in table.items()}
        before = self._restarts
        self._restarts = {worker: before.get(worker, now) for worker, now in restarts.items()}
        if all(now - self._restarts[worker] < _MOST_RESTARTS for worker, now in restarts.items()):
            return None
        node: Any = global_worker.node
        logs = Path(node.get_logs_dir_path())
        return EngineError(
            f"a worker died {_MOST_RESTARTS} times as it started{_last_words(logs)}; Ray's logs of "
            f"it are {logs / _OUTPUT}"
        )


def _last_words(logs: Path) -> str:
    files = sorted(logs.glob(_OUTPUT), key=lambda file: file.stat().st_mtime, reverse=True)
    lines = (line.strip() for file in files for line in reversed(file.read_text().splitlines()))
    return next((f" ({line})" for line in lines if line and not line.startswith(_OF_RAY)), "")
