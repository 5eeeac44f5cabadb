"""A local Ray that does not come up on a loaded machine is started again, then it is one line."""

from typing import Any

import pytest
import ray

from pipeline.cluster import joining
from pipeline.core.errors import ClusterError

NOT_UP = [  # what ray.init raises: ray/_private/node.py and services.py of Ray 2.60
    Exception("The current node timed out during startup."),
    RuntimeError("Failed to start GCS.  Last 0 lines of error files:\n\n.Please check x.out"),
]


def starts(monkeypatch: pytest.MonkeyPatch, error: Exception, fails: int) -> list[Any]:
    """Let `ray.init` fail so often; its calls."""
    calls: list[Any] = []

    def init(**settings: Any) -> None:
        calls.append(settings)
        if len(calls) <= fails:
            raise error

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", init)
    monkeypatch.setattr(ray, "shutdown", lambda: None)
    monkeypatch.setattr(joining, "watch_processes", lambda: None)  # there are none
    return calls


@pytest.mark.parametrize("error", NOT_UP, ids=lambda error: str(error)[:20])
def test_it_is_started_three_times(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    calls = starts(monkeypatch, error, fails=2)
    joining.join(None)
    assert [settings["address"] for settings in calls] == ["local"] * 3


def test_after_three_attempts_it_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    starts(monkeypatch, NOT_UP[0], fails=9)
    with pytest.raises(ClusterError) as caught:
        joining.join(None)
    assert str(caught.value) == (
        "Ray did not start on this machine in 3 attempts (The current node timed out during "
        "startup.); end what else keeps it busy, then run the same command to resume"
    )
    assert ClusterError.exit_code == 4
