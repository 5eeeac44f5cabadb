"""A run on a Ray of its own, whose metrics can be read; prints what that shows Prometheus while it
is at work. The words are those of `gistmill run`."""

import logging
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import ray

from jobs.graph.resolved_run import read_run
from jobs.run.launch import run
from pipeline.cluster.ray_data import COUNTERS
from tests.support.clusters.ray_head import free_ports

_SECONDS_TO_SHOW = 120  # workers report every 10 s, to an agent that is slow to start


def shown(port: int) -> str:
    """The metrics, once every counter is among them, or what was seen last."""
    text, deadline = "", time.monotonic() + _SECONDS_TO_SHOW
    while time.monotonic() < deadline and not all(name in text for name in COUNTERS):
        time.sleep(1)
        with (
            suppress(OSError),  # not yet up
            urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as reply,
        ):
            text = reply.read().decode() or text
    return text


if __name__ == "__main__":
    (port,) = free_ports(1)
    ray.init(address="local", include_dashboard=False, num_cpus=2, _metrics_export_port=port)
    with ThreadPoolExecutor(1) as thread:
        text = thread.submit(shown, port)
        outcome = run(read_run(sys.argv[1:]), warn=logging.warning)
    sys.stdout.write(text.result())
    sys.exit(outcome.exit_code)
