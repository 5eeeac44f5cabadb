"""What killed processes leave in temporary folders, and who deletes it."""

import os
import socket
import subprocess
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
from tests.support.command import succeed
from tests.support.runs.warehouse import Warehouse, document_unit, gist, step


@pytest.fixture
def killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder, in which a process that has ended left temporary files and an engine's folder."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ended = subprocess.Popen(["true"])
    ended.wait()
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: ended.pid)
        (tmp_path / part_name("a.b.csv")).write_text("half")
        (tmp_path / part_name("v.parquet")).mkdir()
        (own_folder("vllm") / "config.json").write_text("")
        assert not has_ended(f"other-{process_name()}"), "it may be at work on another machine"
    return tmp_path


def test_who_is_at_work_has_not_ended() -> None:
    assert not has_ended(process_name())
    assert not is_abandoned(part_name("x")) and not is_abandoned(f".x.{socket.gethostname()}.part")


def test_the_next_to_write_there_deletes_what_killed_processes_left(killed: Path) -> None:
    first, second = own_folder("vllm"), own_folder("vllm")
    assert {*killed.glob("gistmill-vllm-*")} == {first, second}
    for name in ("b.csv", "a.b.csv", "v.parquet"):
        delete_abandoned(as_path(killed / name))
        write(as_path(killed / name), b"whole")
        assert not [*killed.glob(f".{name}.*.part")], name


def test_gc_deletes_what_killed_processes_left(killed: Path) -> None:
    warehouse, gists = Warehouse(killed / "w"), step("gists")
    warehouse.commit(gists, document_unit(gists, "d1"), [gist(0)])
    (left,) = killed.glob(".a.b.csv.*")
    left = left.rename(warehouse.folder / "tables" / left.name)
    mine = warehouse.folder / "tables" / part_name("a.b.csv")
    mine.write_text("is being written")
    succeed("gc", f"warehouse={warehouse.folder}")
    assert mine.exists() and not left.exists()
