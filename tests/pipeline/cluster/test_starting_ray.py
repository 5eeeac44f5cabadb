"""A local Ray that does not come up on a loaded machine is started again, then it is one line."""

from typing import Any

import pytest
import ray

from pipeline.cluster import joining
from pipeline.core.errors import ClusterError
from tests.support.command import gistmill
from tests.support.texts.small_corpus import UNIFORM, document, question, write

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


def test_the_command_ends_in_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    write(tmp_path / "corpus", [document(1)], [question(1, of=1)])
    starts(monkeypatch, NOT_UP[0], fails=9)
    done = gistmill(
        "run", "corpus=tables", f"corpus.path={tmp_path / 'corpus'}", *UNIFORM, "rater=none",
        "methods=bm25(top_k=1)", f"warehouse={tmp_path / 'warehouse'}", "cluster=local",
    )  # fmt: skip
    assert done.returncode == ClusterError.exit_code == 4
    assert done.stderr == (
        "gistmill: Ray did not start on this machine in 3 attempts (The current node timed out "
        "during startup.); end what else keeps it busy, then run the same command to resume\n"
    )
