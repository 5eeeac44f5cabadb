"""What storage refuses: for a moment, then it is asked again; for good, then in one line."""

import errno
import os
import shutil
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import DEFAULT, Mock, patch

import aiohttp
import pytest
from botocore import exceptions as boto  # type: ignore[import-untyped]

from pipeline.core.errors import StorageError
from pipeline.files import storage

HTTP: Any = import_module("httpx2" if find_spec("httpx2") else "httpx")  # whichever hf:// takes
WHERE = storage.as_path("/w/shard")


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """The pauses between attempts, on a clock of their own."""
    slept: list[float] = []
    monkeypatch.setattr("pipeline.files.storage.time.sleep", slept.append)
    monkeypatch.setattr("pipeline.files.storage.time.monotonic", lambda: sum(slept))
    yield slept
    storage.retry_for(60.0)


def os_error(name: str) -> OSError:
    number = getattr(errno, name)
    return OSError(number, os.strerror(number))


@pytest.mark.parametrize("function", ["link", "fsync", "mkdir"])
def test_a_commit_is_tried_again(tmp_path: Path, function: str) -> None:
    outcomes = [*[os_error("EIO")] * 3, *[DEFAULT] * 3]
    with patch.object(os, function, side_effect=outcomes, wraps=getattr(os, function)):
        assert storage.commit(storage.as_path(tmp_path / "a" / "shard"), b"rows")
    assert [file.name for file in (tmp_path / "a").iterdir()] == ["shard"]
    assert (tmp_path / "a" / "shard").read_bytes() == b"rows"


REFUSALS: list[tuple[Exception, bool]] = [  # and whether they may pass
    *((os_error(name), True) for name in ("EIO", "ETIMEDOUT", "ESTALE", "EAGAIN", "EINTR")),
    (ConnectionResetError(errno.ECONNRESET, "reset"), True),
    (TimeoutError(), True),
    (OSError("502 Bad Gateway"), True),  # gcsfs has no number for it
    (boto.EndpointConnectionError(endpoint_url="http://x"), True),
    (boto.ConnectionClosedError(endpoint_url="http://x"), True),
    (boto.ReadTimeoutError(endpoint_url="http://x"), True),
    (aiohttp.ServerDisconnectedError(), True),
    (HTTP.ConnectError("refused"), True),
    (boto.NoCredentialsError(), False),
    (FileNotFoundError("The specified bucket does not exist"), False),
    (PermissionError("Access Denied"), False),
    *((os_error(name), False)
      for name in ("EACCES", "ENODEV", "ENOSPC", "EROFS", "ENOENT", "EDQUOT", "EFBIG")),
]  # fmt: skip


@pytest.mark.parametrize(("error", "may_pass"), REFUSALS, ids=repr)
def test_what_may_pass_is_repeated_and_all_ends_in_one_line(
    error: Exception, may_pass: bool, tmp_path: Path, pauses: list[float]
) -> None:
    path = storage.as_path(tmp_path / "shard")
    with patch.object(os, "fsync", side_effect=error), pytest.raises(StorageError) as caught:
        storage.commit(path, b"rows")
    line = str(caught.value)
    assert line.startswith(f"{path}: ") and "\n" not in line
    assert line.endswith("; put that right, then run the same command to resume")
    assert bool(pauses) == may_pass
    assert list(tmp_path.iterdir()) == []


def test_pauses_grow_and_end(pauses: list[float]) -> None:
    for of_process, limit, seconds in ((5.0, 99.0, 5.0), (5.0, 2.0, 2.0), (5.0, 0.0, 0.0),
                                       (60.0, 99.0, 60.0)):  # fmt: skip
        pauses.clear()
        storage.retry_for(of_process)
        with storage.limit_retries(limit), pytest.raises(StorageError, match="Input/output error"):
            storage.with_retries(Mock(side_effect=os_error("EIO")), WHERE)
        assert sum(pauses) == pytest.approx(seconds)
    assert max(pauses) <= 12.0, "8 s, varied by half"
    assert pauses[0] < 0.2
    assert len({round(pause, 6) for pause in pauses}) == len(pauses), "jitter"


def test_who_won_is_known_after_a_lost_reply(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The link is made and the reply says that it was not, as on NFS; the next attempt finds it."""
    link = os.link

    def linked_without_a_reply(*args: str) -> None:
        monkeypatch.setattr(os, "link", link)
        link(*args)
        raise os_error("ETIMEDOUT")

    monkeypatch.setattr(os, "link", linked_without_a_reply)
    path = storage.as_path(tmp_path / "shard")
    assert storage.commit(path, b"mine"), "the file that exists is ours"
    assert not storage.commit(path, b"another's")
    assert storage.read(path) == b"mine"


def test_a_rename_that_is_repeated_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As NFS does where an answer is lost: the second one does not find the file any more."""
    path, replace = storage.as_path(tmp_path / "progress"), os.replace
    monkeypatch.setattr(os, "replace", lambda *paths: [replace(*paths) for _ in range(2)])
    storage.write(path, b"first")
    monkeypatch.setattr(os, "replace", Mock(side_effect=os_error("ENOENT")))
    with pytest.raises(StorageError, match="No such file"):
        storage.write(path, b"second")
    assert storage.read(path) == b"first"


def test_what_is_not_there_is_no_refusal(tmp_path: Path, pauses: list[float]) -> None:
    gone, folder = storage.as_path(tmp_path / "gone"), storage.as_path(tmp_path)
    for function in (storage.read, storage.modified_at):
        with pytest.raises(FileNotFoundError):
            function(gone)
    assert not storage.exists(gone) and storage.list_paths(gone) == [] and storage.exists(folder)
    storage.delete(gone)
    storage.write(folder / "file", b"x")
    with pytest.raises(StorageError, match="File exists; put that right"):
        storage.write(folder / "file" / "below", b"x")
    assert pauses == []


def test_a_folder_that_goes_while_it_is_listed_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scandir = os.scandir

    def after_it_went(path: Any) -> Any:
        if str(path).endswith("going"):
            shutil.rmtree(path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", after_it_went)
    for name in ("kept", "going"):
        storage.write(storage.as_path(tmp_path / name / "x.json"), b"")
    found = storage.list_paths(storage.as_path(tmp_path), "*/*.json")
    assert found == [tmp_path / "kept" / "x.json"]


def test_nothing_is_written_where_a_warehouse_was(tmp_path: Path) -> None:
    warehouse = storage.as_path(tmp_path / "warehouse")
    with patch.object(storage, "never_made", {warehouse}):
        for name in ("runs/a/alive/worker.json", "worker.json"):
            with pytest.raises(StorageError, match="No such file or directory"):
                storage.write(warehouse / name, b"")
    assert not warehouse.exists()


def test_a_refusal_of_what_is_soon_written_again_is_ignored(pauses: list[float]) -> None:
    """Also while another thread imports a library, which has no errors yet."""
    with patch.dict(sys.modules, aiohttp=ModuleType("aiohttp")), storage.ignore_refusals():
        storage.with_retries(Mock(side_effect=os_error("EIO")), WHERE)
    assert pauses == [], "tried once"
    with pytest.raises(KeyError), storage.ignore_refusals():
        raise KeyError("no error of storage")
