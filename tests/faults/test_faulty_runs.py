"""Real runs on a disk that is full, read-only, gone, or fails now and then: one line, and on."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.faults.scripted_run import REPLY, complaint, end_of, in_its_midst, words
from tests.support.command import own_process, sql, succeeded
from tests.support.faulty_storage import gistmill_with

pytestmark = [pytest.mark.slow, pytest.mark.sampled]

ANSWERS = "select * exclude (step_id, unit) from answers order by all"


def check(folder: Path, command: list[str], undisturbed: Path) -> None:
    """The same command again completes the run, and nothing is lost or doubled."""
    succeeded(own_process(*command))
    assert sql(folder / "warehouse", ANSWERS) == sql(undisturbed / "warehouse", ANSWERS)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("undisturbed")
    succeeded(own_process(*words(folder, REPLY)))
    return folder


@pytest.mark.parametrize(
    ("operations", "errno", "line"),
    [
        ("write", "ENOSPC", "No space left on device"),
        ("open link mkdir unlink replace", "EROFS", "Read-only file system"),
    ],
)
def test_a_disk_that_refuses(
    tmp_path: Path, undisturbed: Path, operations: str, errno: str, line: str
) -> None:
    """From the first answers on; nothing can be written any more, the driver's files neither."""
    command = words(tmp_path, REPLY)
    gists = tmp_path / "warehouse" / "tables" / "gists"
    fault = {"path": f"{tmp_path}/*", "errno": errno, "after": str(gists)}
    faults = [{"operation": operation, **fault} for operation in operations.split()]
    told = complaint(gistmill_with(faults, *command))
    assert told.startswith(str(tmp_path / "warehouse"))
    assert told.endswith(f"{line}; put that right, then run the same command to resume")
    assert not [*gists.glob("**/.*.part")], "nothing half-written"
    check(tmp_path, command, undisturbed)


def test_a_folder_that_vanishes(tmp_path: Path, undisturbed: Path) -> None:
    driver = in_its_midst(words(tmp_path, {"reply": "short", "seconds": 0.3}), tmp_path)
    warehouse, elsewhere = tmp_path / "warehouse", tmp_path / "elsewhere"
    warehouse.rename(elsewhere)
    assert "No such file or directory" in complaint(end_of(driver, timeout=300))
    assert not warehouse.exists(), "not made again"
    elsewhere.rename(warehouse)
    check(tmp_path, words(tmp_path, REPLY), undisturbed)


def test_a_disk_that_fails_now_and_then(tmp_path: Path, undisturbed: Path) -> None:
    """No heartbeat is ever written; each process's commits fail, and one takes ten seconds."""
    command = words(tmp_path, REPLY)
    tables = f"{tmp_path}/warehouse/tables/*"
    faults: list[dict[str, Any]] = [
        {"operation": "open", "path": "*/alive/*", "errno": "ENOSPC"},
        {"operation": "fsync", "path": tables, "errno": "EIO", "skip": 2, "times": 6},
        {"operation": "link", "path": tables, "errno": "ESTALE", "skip": 3, "times": 4},
        {"operation": "read", "path": tables, "errno": "ETIMEDOUT", "times": 5},
        {"operation": "listdir", "path": tables, "errno": "EAGAIN", "times": 3},
        {"operation": "link", "path": "*/tables/answers/*", "seconds": 10.0, "times": 1},
    ]
    done = gistmill_with(faults, *command, "--json")
    assert json.loads(succeeded(done))["exit_code"] == 0
    assert sql(tmp_path / "warehouse", ANSWERS) == sql(undisturbed / "warehouse", ANSWERS)


@pytest.mark.parametrize("verb", [["report"], ["status"], ["sql", "from answers"]])
def test_reading_what_is_refused_is_one_line(undisturbed: Path, verb: list[str]) -> None:
    fault = {"operation": "read", "path": "*/steps/*", "errno": "ENODEV"}
    done = gistmill_with([fault], *verb, f"warehouse={undisturbed / 'warehouse'}")
    told = complaint(done)
    assert told.endswith("No such device; put that right, then run the same command to resume")
