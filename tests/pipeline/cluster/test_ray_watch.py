"""A driver ends with one line when a process of its Ray is killed, whatever it is waiting for."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from tests.support.command import ROOT

pytestmark = pytest.mark.slow
JOINED = """\
import time
import ray
from pipeline.cluster import join
join(None)
print("joined", flush=True)
"""
WAITING = {
    "asking Ray": JOINED + "while True: ray.nodes()",
    "elsewhere": JOINED + "time.sleep(600)",
}


@contextmanager
def begun(script: str) -> "Iterator[subprocess.Popen[str]]":
    driver = subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        yield driver
    finally:
        driver.kill()


@pytest.mark.parametrize("waiting", WAITING)
@pytest.mark.parametrize("process", ["raylet", "gcs_server"])
def test_a_driver_says_that_ray_was_killed(process: str, waiting: str) -> None:
    with begun(WAITING[waiting]) as driver:
        assert driver.stdout
        assert driver.stdout.readline() == "joined\n"
        (of_ray,) = [child for child in psutil.Process(driver.pid).children(recursive=True)
                     if child.name() == process]  # fmt: skip
        of_ray.kill()
        _, told = driver.communicate(timeout=60)
    assert told == f"gistmill: Ray's {process} was killed; run the same command to resume\n"
    assert driver.returncode == 4


def test_a_ray_that_was_shut_down_ends_nothing() -> None:
    script = JOINED + "ray.shutdown(); time.sleep(3.0); join(None); print('again')"
    with begun(script) as driver:
        out, told = driver.communicate(timeout=120)
    assert (out, told, driver.returncode) == ("joined\nagain\n", "", 0)
