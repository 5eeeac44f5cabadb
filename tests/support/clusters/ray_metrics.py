"""A run on a Ray of its own, whose metrics can be read; prints what that shows Prometheus while it
is at work. The words are those of `gistmill run`."""

import logging
import socket
import sys
import threading
import time
import urllib.request

import ray

from jobs.graph.resolved_run import read_run
from jobs.run.launch import run
from pipeline.cluster.ray_data import COUNTERS

_SECONDS_TO_SHOW = 120  # workers report every 10 s, to an agent that is slow to start


class _Watch(threading.Thread):
    """Looks until every counter is shown; `text` is what was seen last."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self._address = f"http://127.0.0.1:{port}/metrics"
        self.text = ""

    def run(self) -> None:
        deadline = time.monotonic() + _SECONDS_TO_SHOW
        while time.monotonic() < deadline and not all(name in self.text for name in COUNTERS):
            time.sleep(1)
            self.text = self._shown() or self.text

    def _shown(self) -> str:
        try:
            with urllib.request.urlopen(self._address, timeout=5) as reply:
                return str(reply.read().decode())
        except OSError:  # not yet up
            return ""


def main() -> None:
    """Print the text; the exit code is the run's."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ray.init(address="local", include_dashboard=False, num_cpus=2, _metrics_export_port=port)
    watch = _Watch(port)
    watch.start()
    outcome = run(read_run(sys.argv[1:]), warn=logging.warning)
    watch.join()
    sys.stdout.write(watch.text)
    sys.exit(outcome.exit_code)


if __name__ == "__main__":
    main()
