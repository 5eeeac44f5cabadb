"""What storage refuses: for a moment, then it is asked again; for good, then in one line."""

import ast
import errno
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pipeline.core.errors import StorageError
from pipeline.files.storage import (
    Advisory,
    as_path,
    commit,
    delete,
    exists,
    ignore_refusals,
    is_file,
    is_transient,
    limit_retries,
    list_paths,
    make_again,
    modified_at,
    never_make,
    read,
    retry_for,
    with_retries,
    write,
)
from tests.support.command import ROOT


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """The pauses between attempts, on a clock of their own."""
    slept: list[float] = []
    monkeypatch.setattr("pipeline.files.storage.time.sleep", slept.append)
    monkeypatch.setattr("pipeline.files.storage.time.monotonic", lambda: sum(slept))
    yield slept
    retry_for(60.0)


def failing(number: int, times: int, then: Callable[..., Any]) -> Callable[..., Any]:
    """A call that fails some times."""
    left = iter(range(times))

    def call(*args: Any, **kwargs: Any) -> Any:
        if next(left, None) is not None:
            raise OSError(number, os.strerror(number))
        return then(*args, **kwargs)

    return call


@pytest.mark.parametrize("name", ["EIO", "ETIMEDOUT", "ESTALE", "EAGAIN", "EINTR"])
@pytest.mark.parametrize("function", ["link", "fsync"])
def test_a_commit_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, function: str
) -> None:
    monkeypatch.setattr(os, function, failing(getattr(errno, name), 3, getattr(os, function)))
    assert commit(as_path(tmp_path / "a" / "shard"), b"rows")
    assert [file.name for file in (tmp_path / "a").iterdir()] == ["shard"]
    assert (tmp_path / "a" / "shard").read_bytes() == b"rows"


def test_pauses_grow_and_end(pauses: list[float]) -> None:
    def refuse() -> None:
        raise OSError(errno.EIO, "Input/output error")

    with pytest.raises(StorageError, match="Input/output error"):
        with_retries(refuse, as_path("/w/shard"))
    assert sum(pauses) == pytest.approx(60.0)
    assert max(pauses) <= 12.0, "8 s, varied by half"
    assert pauses[0] < 0.2
    assert len({round(pause, 6) for pause in pauses}) == len(pauses), "jitter"
    retry_for(5.0)
    pauses.clear()
    with pytest.raises(StorageError):
        with_retries(refuse, as_path("/w/shard"))
    assert sum(pauses) == pytest.approx(5.0)


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("ENOSPC", "free some space"),
        ("EROFS", "make it writable"),
        ("EACCES", "grant access to it"),
        ("ENOENT", "put the folder back"),
        ("EDQUOT", "free some space or raise the quota"),
        ("EFBIG", "raise the limit on the size of files"),
    ],
)
def test_what_will_not_pass_is_tried_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pauses: list[float], name: str, fix: str
) -> None:
    number = getattr(errno, name)
    monkeypatch.setattr(os, "fsync", failing(number, 1, os.fsync))
    path = as_path(tmp_path / "shard")
    with pytest.raises(StorageError) as caught:
        commit(path, b"rows")
    assert str(caught.value) == (
        f"{path}: {os.strerror(number)}; {fix}, then run the same command to resume"
    )
    assert pauses == []
    assert list(tmp_path.iterdir()) == []


def test_who_won_is_known_after_a_lost_reply(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The link is made and the reply says that it was not, as on NFS; the next attempt finds it."""
    link, calls = os.link, iter([True])

    def made_but_not_told(*args: str) -> None:
        link(*args)
        if next(calls, False):
            raise OSError(errno.ETIMEDOUT, "Connection timed out")

    monkeypatch.setattr(os, "link", made_but_not_told)
    path = as_path(tmp_path / "shard")
    assert commit(path, b"mine"), "the file that exists is ours"
    assert not commit(path, b"another's")
    assert read(path) == b"mine"


def test_what_is_not_there_is_no_refusal(tmp_path: Path, pauses: list[float]) -> None:
    gone = as_path(tmp_path / "gone")
    for function in (read, modified_at):
        with pytest.raises(FileNotFoundError):
            function(gone)
    assert not is_file(gone)
    assert not exists(gone)
    assert list_paths(gone) == []
    assert not is_file(as_path(tmp_path))
    assert exists(as_path(tmp_path))
    delete(gone)
    write(as_path(tmp_path / "file"), b"x")
    with pytest.raises(StorageError, match="File exists; put that right"):
        write(as_path(tmp_path / "file" / "below"), b"x")
    assert pauses == []


@pytest.mark.parametrize("pattern", ["*/*.json", "**/*.json"])
def test_a_folder_that_goes_while_it_is_listed_is_left_out(
    pattern: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("kept", "going"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.json").touch()
    scandir = os.scandir

    def after_it_went(path: Any) -> Any:
        if str(path).endswith("going"):
            shutil.rmtree(path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", after_it_went)
    assert list_paths(as_path(tmp_path), pattern) == [tmp_path / "kept" / "x.json"]


@pytest.mark.parametrize("where", ["runs/a/alive/worker.json", "worker.json"])
def test_a_folder_that_goes_while_one_below_it_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Moved away before the first change."""
    warehouse, away = tmp_path / "warehouse", tmp_path / "away"
    warehouse.mkdir()
    write(as_path(warehouse / "gistmill.json"), b"1")
    never_make(as_path(warehouse))

    def moved_first(change: Callable[..., Any]) -> Callable[..., Any]:
        def call(path: Path, *args: Any, **kwargs: Any) -> Any:
            is_read = "rb" in (*args, *kwargs.values())
            if path.is_relative_to(warehouse) and not is_read and not away.exists():
                warehouse.rename(away)
            return change(path, *args, **kwargs)

        return call

    try:
        monkeypatch.setattr(Path, "mkdir", moved_first(Path.mkdir))
        monkeypatch.setattr(Path, "open", moved_first(Path.open))
        with pytest.raises(StorageError, match="put the folder back"):
            write(as_path(warehouse / where), b"{}")
    finally:
        make_again(as_path(warehouse))
    assert not warehouse.exists()
    assert [*away.iterdir()] == [away / "gistmill.json"]


def test_libraries_of_object_stores() -> None:
    import aiohttp
    from botocore import exceptions  # type: ignore[import-untyped]

    assert is_transient(exceptions.EndpointConnectionError(endpoint_url="http://x"))
    assert is_transient(exceptions.ConnectionClosedError(endpoint_url="http://x"))
    assert is_transient(exceptions.ReadTimeoutError(endpoint_url="http://x"))
    assert is_transient(aiohttp.ServerDisconnectedError())
    assert is_transient(OSError("502 Bad Gateway")), "s3fs has no number for it"
    assert is_transient(ConnectionResetError(errno.ECONNRESET, "reset"))
    assert is_transient(TimeoutError())
    assert not is_transient(exceptions.NoCredentialsError())
    assert not is_transient(PermissionError("Access Denied"))
    assert not is_transient(FileNotFoundError("The specified bucket does not exist"))


def test_a_library_that_another_thread_imports_has_no_errors_yet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("aiohttp", "botocore.exceptions"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    with ignore_refusals():
        raise OSError(errno.EIO, "once")
    assert not is_transient(ValueError("of no library"))


def test_advisory_files_are_tried_once_and_what_failed_is_kept(pauses: list[float]) -> None:
    advisory = Advisory()
    assert advisory.state() is None
    for _ in range(3):
        with advisory.attempt():
            with_retries(failing(errno.EIO, 9, str), as_path("/w/alive"))
        pauses.append(10.0)  # until the next one
    assert advisory.is_refused
    assert advisory.state() == {"count": 3, "seconds": 30.0, "error": "Input/output error"}
    with advisory.attempt():
        pass
    assert not advisory.is_refused
    assert advisory.state() == {"count": 3, "seconds": 30.0, "error": "Input/output error"}, (
        "it says so afterwards"
    )
    with pytest.raises(KeyError), advisory.attempt():
        raise KeyError("no error of storage")


def test_a_limit_of_its_own(pauses: list[float]) -> None:
    with limit_retries(2.0), pytest.raises(StorageError):
        with_retries(failing(errno.EIO, 99, str), as_path("/w/x"))
    assert sum(pauses) == pytest.approx(2.0)


OF_WAREHOUSES = (
    *sorted((ROOT / "pipeline" / "store").rglob("*.py")),
    *sorted((ROOT / "pipeline" / "worker").glob("*.py")),
    ROOT / "pipeline" / "asking" / "known_replies.py",
)  # fmt: skip
OPERATIONS = {"exists", "glob", "is_dir", "is_file", "iterdir", "mkdir", "read_bytes", "read_text",
              "rename", "rglob", "stat", "unlink", "write_bytes", "write_text"}  # fmt: skip


@pytest.mark.parametrize("file", OF_WAREHOUSES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_all_go_through_one_boundary(file: Path) -> None:
    """A path's own methods are not retried, and where a store does not answer some say no. Use
    those of pipeline/files/storage.py; a file that is opened, within `with_retries`."""
    calls = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)]
    called = [call.func for call in calls if isinstance(call.func, ast.Attribute)]
    found = [f"{node.lineno}: {node.attr}" for node in called if node.attr in OPERATIONS]
    assert found == [], file
