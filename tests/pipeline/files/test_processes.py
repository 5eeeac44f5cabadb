"""What killed processes leave in temporary folders, and who deletes it."""

import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from pipeline.files.storage import (
    as_path,
    delete_abandoned,
    has_ended,
    is_abandoned,
    own_folder,
    part_name,
    process_name,
    write,
)
from tests.support.command import ROOT, succeed
from tests.support.runs.finished_run import FinishedRun

KILLED = """
import os, signal, sys
from pathlib import Path
from pipeline.files.storage import own_folder, part_name
folder = Path(sys.argv[1])
(folder / part_name("a.b.csv")).write_text("half")
(folder / part_name("v.parquet")).mkdir()
(own_folder("vllm") / "config.json").write_text("")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder, in which a killed process has left two temporary files and an engine's folder."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], cwd=ROOT, env=environment)
    assert done.returncode == -9
    assert len([*tmp_path.iterdir()]) == 3
    return tmp_path


def test_who_has_ended() -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    host = socket.gethostname()
    assert has_ended(f"{host}-{ended.pid}")
    assert not has_ended(process_name())
    assert not has_ended(f"other-{host}-{ended.pid}")  # may be at work on another machine
    assert not is_abandoned(part_name("x")) and not is_abandoned(f".x.{host}.part")


def test_the_next_to_write_there_deletes_what_killed_processes_left(killed: Path) -> None:
    first, second = own_folder("vllm"), own_folder("vllm")
    assert {*killed.glob("gistmill-vllm-*")} == {first, second}
    for name in ("b.csv", "a.b.csv", "v.parquet"):
        delete_abandoned(as_path(killed / name))
        write(as_path(killed / name), b"whole")
        assert not [*killed.glob(f".{name}.*.part")], name


def test_gc_deletes_what_killed_processes_left(killed: Path) -> None:
    warehouse = FinishedRun(killed / "run").warehouse
    (left,) = killed.glob(".a.b.csv.*")
    left.rename(warehouse / "tables" / left.name)
    mine = warehouse / "tables" / part_name("a.b.csv")
    mine.write_text("is being written")
    succeed("gc", f"warehouse={warehouse}")
    assert mine.exists() and not (warehouse / "tables" / left.name).exists()
