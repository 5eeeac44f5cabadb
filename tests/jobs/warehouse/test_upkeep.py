"""`gistmill rm`, and `gc` after it: which rows go and which stay, also after kills. That compaction
loses no row tests/pipeline/store/test_compaction.py tests."""

import json
import os
import random
import time
from pathlib import Path
from unittest.mock import Mock

import pytest

from jobs.warehouse.upkeep import retention
from pipeline.core.calls import Call
from pipeline.core.errors import DamagedError, UsageError
from pipeline.files.lease import RUN, UPKEEP, lease
from pipeline.files.storage import as_path
from pipeline.store import Shards, connect
from pipeline.store.runs.run_folder import add_labels
from pipeline.store.shards.shard_index import newest_index
from pipeline.store.sql.connection import query
from pipeline.store.upkeep import collect, compact, is_among, remove_run
from tests.pipeline.store.test_compaction import call, commit_some, stored
from tests.support.command import refused, sql, sql_values, succeed
from tests.support.runs.finished_run import FinishedRun
from tests.support.runs.warehouse import Warehouse, answer, chunk, document_unit, gist, step

GISTS, ANSWERS, OTHER = step("gists"), step("answers", "full_text"), step("answers", "bm25")
SHARED, OWN = document_unit(GISTS, "d1"), document_unit(GISTS, "d2")
ASKED, ASKED_OTHER = chunk(ANSWERS, "d1", "q1", "q2"), chunk(OTHER, "d1", "q1")


@pytest.fixture(params=["loose", "both"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Two runs: `gone` has d1 and d2 and a method of its own, `kept` d1 and another method."""
    warehouse = Warehouse(tmp_path)
    for unit in (SHARED, OWN):
        warehouse.commit(GISTS, unit, [gist(0, f"of {unit.document_id}", unit.document_id)])
        warehouse.commit(GISTS, unit, [call(0, unit.document_id)], Call)
    if request.param == "both":
        compact(tmp_path, least=1)
    warehouse.commit(ANSWERS, ASKED, [answer("q1"), answer("q2")])
    warehouse.commit(OTHER, ASKED_OTHER, [answer("q1")])
    warehouse.plan("gone", (GISTS, [SHARED, OWN]), (ANSWERS, [ASKED]))
    warehouse.plan("kept", (GISTS, [SHARED]), (OTHER, [ASKED_OTHER]))
    return tmp_path


def is_hidden(folder: Path) -> None:
    """No run has what only `gone` had, and all that `kept` has is there."""
    assert sql_values(folder, "select document_id from gists") == [("d1",)]
    for table in ("gists", "calls"):
        statement = f"select run, document_id from all_{table} where run is not null"
        assert sql_values(folder, statement) == [("kept", "d1")]
    statement = "select run, method, question_id from all_answers where run is not null"
    assert sql_values(folder, statement) == [("kept", "bm25", "q1")]
    assert sql(folder, "from left_out") == sql(folder, "from accounting where not_done > 0") == []
    assert not (folder / "runs" / "gone").exists()


def is_deleted(folder: Path) -> None:
    is_hidden(folder)
    assert not sql(folder, "from all_gists where run is null")
    assert {file.stem for file in (folder / "steps").iterdir()} == {GISTS.id, OTHER.id}
    assert not [*(folder / "removed").iterdir()]
    assert not [*folder.glob(f"*/*/{ANSWERS.id}")]
    index = newest_index(as_path(folder) / "compacted")
    assert is_among(index.rows, {(GISTS.id, OWN.unit), (ANSWERS.id, ASKED.unit)}).true_count == 0


def shards(folder: Path) -> set[Path]:
    return {*folder.glob("tables/*/*/*.parquet"), *folder.glob("compacted/*/*.parquet")}


def older(folder: Path, seconds: float) -> None:
    """The records of rm, as if it had written them before."""
    for file in (folder / "removed").iterdir():
        os.utime(file, (time.time() - seconds,) * 2)


@pytest.mark.slow
def test_what_no_other_run_uses_goes_with_it(folder: Path) -> None:
    """Its files after the retention, as readers may have chosen them."""
    before = shards(folder)
    early = connect(folder)
    printed = json.loads(succeed("rm", f"warehouse={folder}", "run=gone", "--yes", "--json"))
    assert printed == {"run": "gone", "units": 3}
    for hours in (0, 23):
        older(folder, hours * 3600)
        collect(folder)
        is_hidden(folder)
        assert shards(folder) == before
    assert query(early, "select count(*) as n from raw_gists") == [{"n": 2}]
    older(folder, 25 * 3600)
    collect(folder)
    is_deleted(folder)
    succeed("gc", f"warehouse={folder}", "older_than=0")
    is_deleted(folder)
    warehouse = Warehouse(folder)
    warehouse.commit(GISTS, OWN, [gist(0, "again", "d2")])
    warehouse.plan("gone", (GISTS, [OWN]))
    collect(folder, older_than=0)
    assert sql_values(folder, "select gist from gists", "run=gone") == [("again",)]


@pytest.mark.slow
def test_while_a_run_plans_nothing_is_deleted_that_it_may_count_on(folder: Path) -> None:
    succeed("rm", f"warehouse={folder}", "run=gone", "--yes")
    with lease(as_path(folder) / "runs" / "again", RUN):
        printed = succeed("gc", f"warehouse={folder}", "older_than=0")
        assert printed.endswith("what removed runs had planned stays, as a run is at work\n")
        assert OWN.unit in Shards(folder).units("gists", GISTS.id)
        assert ASKED.unit in Shards(folder).units("answers", ANSWERS.id)
        Warehouse(folder).plan("again", (GISTS, [OWN]))
    succeed("gc", f"warehouse={folder}", "older_than=0")
    rows = sql_values(folder, "select run, document_id from all_gists order by all")
    assert rows == [("again", "d2"), ("kept", "d1")]
    assert not [*(folder / "removed").iterdir()]
    assert not [*folder.glob(f"tables/*/{ANSWERS.id}/*")]


def test_a_plan_of_version_0_2_in_parts_keeps_its_units(folder: Path) -> None:
    run = folder / "runs" / "kept"
    (run / "plan").mkdir()
    (run / "units.parquet").rename(run / "plan" / "0.parquet")
    for name, units in (("gone", {SHARED.unit}), ("kept", set[str]())):
        remove_run(as_path(folder), name)
        collect(folder, older_than=0)
        assert Shards(folder).units("gists", GISTS.id).keys() == units
    assert not [*folder.glob("tables/*/*/*")]


def test_a_run_that_was_begun_again_after_a_kill_keeps_what_it_uses(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The removal was killed when it had written its record."""

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("pipeline.files.storage.delete", Mock(side_effect=KeyboardInterrupt))
        remove_run(as_path(folder), "gone")
    Warehouse(folder).plan("again", (GISTS, [OWN]))
    succeed("rm", f"warehouse={folder}", "run=gone", "--yes")
    collect(folder, older_than=0)
    rows = sql_values(folder, "select run, document_id from all_gists order by all")
    assert rows == [("again", "d2"), ("kept", "d1")]


def test_nothing_is_deleted_while_a_plan_cannot_be_read(folder: Path) -> None:
    remove_run(as_path(folder), "gone")
    plan = folder / "runs" / "kept" / "units.parquet"
    whole, before = plan.read_bytes(), shards(folder)
    plan.write_bytes(whole[:-9])
    with pytest.raises(DamagedError, match="start the run again") as caught:
        collect(folder, older_than=0)
    assert caught.value.file == str(plan) and shards(folder) == before
    plan.write_bytes(whole)
    collect(folder, older_than=0)
    is_deleted(folder)


@pytest.mark.slow
def test_within_the_retention_the_run_can_be_made_again_without_a_call(tmp_path: Path) -> None:
    night = FinishedRun(tmp_path)
    answers = sql(night.warehouse, "from answers order by all")
    succeed("rm", f"warehouse={night.warehouse}", "run=night", "--yes")
    succeed("gc", f"warehouse={night.warehouse}")
    outcome = json.loads(succeed(*night.words(night.warehouse), "--json"))
    assert sum(outcome["calls"].values()) == 0
    assert sql(night.warehouse, "from answers order by all") == answers
    succeed("gc", f"warehouse={night.warehouse}", "older_than=0")
    assert sql(night.warehouse, "from answers order by all") == answers


def test_what_rm_refuses(tmp_path: Path) -> None:
    """The labels of people, which go with a run, are counted."""
    Warehouse(tmp_path).plan("gone")
    for words, says in {
        ("run=gonne", "--yes"): f"run=gonne: not in {tmp_path}; nearest: gone",
        (): "run= is missing",
        ("run=gone",): "run=gone: deletes it for good; add --yes",
    }.items():
        assert refused("rm", f"warehouse={tmp_path}", *words).startswith(says)
    with lease(as_path(tmp_path) / "runs" / "gone", RUN):
        line = refused("rm", f"warehouse={tmp_path}", "run=gone", "--yes")
    assert line.startswith("run=gone: being executed on ") and f"process {os.getpid()}" in line
    assert (tmp_path / "runs" / "gone" / "units.parquet").exists()
    of_answer = dict.fromkeys(("method", "document_id", "question_id", "answer_sha"), "x")
    add_labels(as_path(tmp_path) / "runs" / "gone", "ann", [{**of_answer, "label": "yes"}])
    damaged = tmp_path / "runs" / "gone" / "people" / "bob.parquet"
    damaged.write_bytes(b"x")
    words = ("rm", f"warehouse={tmp_path}", "run=gone")
    assert refused(*words) == "run=gone: deletes it and 1 label of people for good; add --yes"
    assert (tmp_path / "runs" / "gone").exists()
    succeed(*words, "--yes")
    assert not damaged.exists()


def test_gc_compacts_and_deletes(tmp_path: Path) -> None:
    commit_some(Warehouse(tmp_path), random.Random(3), range(20))
    shards = stored(tmp_path)
    counts = json.loads(succeed("gc", f"warehouse={tmp_path}", "--json"))
    assert counts == {"compacted": len(shards), "into": 3, "deleted": 0, "bytes": 0}
    sizes = [path.stat().st_size for path in (tmp_path / "tables").rglob("*.parquet")]
    counts = json.loads(succeed("gc", f"warehouse={tmp_path}", "older_than=0", "--json"))
    assert counts == {"compacted": 0, "into": 0, "deleted": len(sizes), "bytes": sum(sizes)}
    assert stored(tmp_path) == {}
    text = succeed("gc", f"warehouse={tmp_path}")
    assert text == "compacted 0 shards into 0 files\ndeleted 0 files, 0 bytes\n"


def test_temporary_files_are_deleted_when_no_write_takes_so_long(tmp_path: Path) -> None:
    """A folder that a killed export left is none."""
    commit_some(Warehouse(tmp_path), random.Random(3), range(9))
    folder, old, new = (tmp_path / f".{name}.part" for name in ("folder", "old", "new"))
    folder.mkdir()
    for file in (old, new):
        file.write_text("half of a write")
    for file in (folder, old):
        os.utime(file, (time.time() - 4000,) * 2)
    counts = json.loads(succeed("gc", f"warehouse={tmp_path}", "older_than=0", "--json"))
    assert counts["deleted"] > 1 and folder.is_dir() and new.exists() and not old.exists()


def test_durations() -> None:
    durations = {None: 86400, "0": 0, "90s": 90, "5m": 300, "24h": 86400, "2d": 172800}
    assert {text: retention(text) for text in durations} == durations
    for text in ("soon", "-1h", "1", "24 h", "9999999d"):
        with pytest.raises(UsageError, match="not a duration"):
            retention(text)


def test_what_gc_refuses(tmp_path: Path) -> None:
    """A folder without a warehouse; and a second upkeep at the same time."""
    assert refused("gc", f"warehouse={tmp_path}").startswith(f"warehouse={tmp_path}: no warehouse")
    assert list(tmp_path.iterdir()) == []
    commit_some(Warehouse(tmp_path), random.Random(3), range(3))
    with lease(as_path(tmp_path), UPKEEP):
        assert "another process" in refused("gc", f"warehouse={tmp_path}")
