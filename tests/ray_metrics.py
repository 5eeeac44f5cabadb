"""A small Ray that counts each of our counters once; prints what it shows Prometheus.

A process of its own: the tests' own Ray shows nothing.
"""

import os
import socket
import time
import urllib.request
from typing import Any

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
import ray
from ray.util.metrics import Counter

from pipeline.metrics import COUNTERS

_SECONDS_TO_SHOW = 90  # workers report every 10 s, to an agent that is slow to start


@ray.remote(num_cpus=0)
class _Worker:
    def count(self) -> None:
        tags = ("run", "phase")
        self.counters = [Counter(name, told, tag_keys=tags) for name, told in COUNTERS.items()]
        for counter in self.counters:
            counter.inc(3, {"run": "night", "phase": "reading"})


def main() -> None:
    """Print the text once it has every counter. Raises TimeoutError where it has not in time."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ray.init(address="local", include_dashboard=False, num_cpus=1, _metrics_export_port=port)
    make_worker: Any = _Worker
    worker = make_worker.remote()
    ray.get(worker.count.remote())
    deadline = time.monotonic() + _SECONDS_TO_SHOW
    text = ""
    while not all(name in text for name in COUNTERS):
        if time.monotonic() > deadline:
            raise TimeoutError(text)
        time.sleep(1)
        text = _shown(port)
    print(text)  # noqa: T201


def _shown(port: int) -> str:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as reply:
            return str(reply.read().decode())
    except OSError:  # not yet up
        return ""


if __name__ == "__main__":
    main()
