"""A look, every second of an execution, at Ray's own processes, without which the driver would end
in silence, and for workers that die as they start, which Ray would restart for ever."""

import errno
import socket
from pathlib import Path
from typing import Any

from ray._private.state import state
from ray._private.worker import global_worker

from pipeline.core.errors import ClusterError, EngineError

_MOST_RESTARTS = 10  # of a worker that is never up between them
_OUTPUT = "worker-*.err"
_OF_RAY = (":job_id:", ":actor_name:", ":task_name:")  # lines that Ray writes there itself


class RayWatch:
    """Watches the Ray that this process has joined."""

    def __init__(self) -> None:
        self._restarts: dict[str, int] = {}  # by worker that is not up: before it went down

    def look(self) -> None:
        """Raise ClusterError if a process of a local Ray, or this machine's raylet of another, has
        ended; EngineError if a worker dies again and again before it has started."""
        node: Any = global_worker.node
        dead = [name for name, _ in node.dead_processes()]
        if dead or not _is_listening(node.raylet_socket_name):
            name = dead[0] if dead else "raylet"
            raise ClusterError(f"Ray's {name} was killed; run the same command to resume")
        down = self._down()
        self._restarts = {
            worker: self._restarts.get(worker, num_restarts)
            for worker, num_restarts in down.items()
        }
        for worker, num_restarts in down.items():
            if num_restarts - self._restarts[worker] >= _MOST_RESTARTS:
                logs = Path(node.get_logs_dir_path())
                said = _last_words(logs)
                raise EngineError(
                    f"a worker died {_MOST_RESTARTS} times as it started{said}; Ray's logs of it "
                    f"are {logs / _OUTPUT}"
                )

    def _down(self) -> dict[str, int]:
        """The workers of this driver that Ray is restarting, with how often it has."""
        job = global_worker.current_job_id
        actors: dict[str, Any] = state.actor_table(None, job, "RESTARTING")
        return {actor: found["NumRestarts"] for actor, found in actors.items()}


def _is_listening(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as end:
        return end.connect_ex(path) not in (errno.ECONNREFUSED, errno.ENOENT)


def _last_words(logs: Path) -> str:
    """The last line that a worker of this machine wrote on standard error, for a message."""
    files = sorted(logs.glob(_OUTPUT), key=lambda file: file.stat().st_mtime, reverse=True)
    lines = (line for file in files for line in reversed(file.read_text().splitlines()))
    own = (line for line in lines if line.strip() and not line.startswith(_OF_RAY))
    return next((f" ({line.strip()})" for line in own), "")
