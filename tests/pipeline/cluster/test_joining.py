"""A local Ray that does not come up is started again, then it is one line."""

import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest
import ray

from pipeline.cluster import joining
from pipeline.core.errors import ClusterError
from tests.support.command import ROOT, refused

NOT_UP = [  # what ray.init raises: ray/_private/node.py and services.py of Ray 2.60
    Exception("The current node timed out during startup."),
    RuntimeError("Failed to start GCS.  Last 0 lines of error files:\n\n.Please check x.out"),
]
SHUT_DOWN = """\
import time
import ray
from pipeline.cluster import join
join(None)
ray.shutdown()
time.sleep(3.0)
join(None)
print("again")"""


@pytest.mark.parametrize("error", NOT_UP, ids=lambda error: str(error)[:20])
def test_it_is_started_three_times(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    init = Mock(side_effect=[error, error, None, *[error] * 3])
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", init)
    monkeypatch.setattr(ray, "shutdown", lambda: None)
    monkeypatch.setattr(joining, "watch_processes", lambda: None)  # there are none
    joining.join(None)
    assert init.call_count == 3
    with pytest.raises(ClusterError, match="not start on this machine in 3 attempts") as caught:
        joining.join(None)
    assert [call.kwargs["address"] for call in init.mock_calls] == ["local"] * 6
    assert str(error).split(".", 1)[0] in str(caught.value) and "\n" not in str(caught.value)


def test_a_cluster_that_cannot_be_joined_is_refused(tmp_path: Path) -> None:
    ray.shutdown()  # else this process stays where it is
    words = ["cluster=ray", "cluster.address=127.0.0.1:1", f"warehouse={tmp_path / 'w'}"]
    assert "cluster.address=127.0.0.1:1: no Ray to join" in refused("run", *words)
    assert not (tmp_path / "w").exists()


@pytest.mark.slow
def test_a_ray_that_was_shut_down_ends_nothing() -> None:
    command = [sys.executable, "-c", SHUT_DOWN]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr, done.returncode) == ("again\n", "", 0)
