"""`gistmill rm`: what goes and what stays, loose and compacted, also when it is killed midway."""

import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobs.run.run_lock import LEASE, count_removals
from jobs.warehouse import rm
from pipeline.core.rows import Call
from pipeline.files.place import as_path
from pipeline.store import connect
from pipeline.store.runs.people import add_labels
from pipeline.store.runs.run_folder import RunFolder
from pipeline.store.sql.connection import query
from pipeline.store.upkeep import compaction, removal
from pipeline.store.upkeep.compaction import compact
from pipeline.store.upkeep.lease import Lease, lease
from tests.pipeline.store.test_compaction import call
from tests.support.command import gistmill, one_line, own_process, refused, sql, succeed, succeeded
from tests.support.runs.finished_run import FinishedRun
from tests.support.runs.warehouse import Warehouse, answer, chunk, document_unit, gist, step

GISTS, ANSWERS, OTHER = step("gists"), step("answers", "full_text"), step("answers", "bm25")
SHARED, OWN = document_unit(GISTS, "d1"), document_unit(GISTS, "d2")
ASKED, ASKED_OTHER = chunk(ANSWERS, "d1", "q1", "q2"), chunk(OTHER, "d1", "q1")
KEPT = ["d1"]  # the documents whose gists the run `kept` has


@pytest.fixture(params=["loose", "compacted", "both"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Two runs: `gone` has d1 and d2 and a method of its own, `kept` d1 and another method."""
    warehouse = Warehouse(tmp_path)
    for unit in (SHARED, OWN):
        warehouse.commit(GISTS, unit, [gist(0, f"of {unit.document_id}", unit.document_id)])
        warehouse.commit(GISTS, unit, [call(0, unit.document_id)], Call)
    if request.param != "loose":
        compact(tmp_path, least=1)
    warehouse.commit(ANSWERS, ASKED, [answer("q1"), answer("q2")])
    warehouse.commit(OTHER, ASKED_OTHER, [answer("q1")])
    if request.param == "compacted":
        compact(tmp_path, least=1)
    warehouse.plan("gone", (GISTS, [SHARED, OWN]), (ANSWERS, [ASKED]))
    warehouse.plan("kept", (GISTS, [SHARED]), (OTHER, [ASKED_OTHER]))
    return tmp_path


def stands(folder: Path) -> None:
    """All that `kept` has is there, and nothing that only `gone` had, in whatever view."""
    assert [row["document_id"] for row in sql(folder, "from gists order by all")] == KEPT
    for table in ("gists", "calls"):
        rows = sql(folder, f"select run, document_id from all_{table}")
        assert rows == [{"run": "kept", "document_id": "d1"}]
    answers = sql(folder, "select run, method, question_id from all_answers")
    assert answers == [{"run": "kept", "method": "bm25", "question_id": "q1"}]
    with connect(folder) as connection:
        assert query(connection, "select count(*) as n from raw_answers") == [{"n": 1}]
        assert query(connection, "from left_out") == []
        assert sum(row["not_done"] for row in query(connection, "from accounting")) == 0
    assert not (folder / "runs" / "gone").exists()
    assert {file.stem for file in (folder / "steps").iterdir()} == {GISTS.id, OTHER.id}
    assert not [*(folder / "removed").iterdir()]
    assert not [*(folder / "tables").glob(f"*/{ANSWERS.id}")]


@pytest.mark.slow
def test_what_no_other_run_uses_goes_with_it(folder: Path) -> None:
    loose = len([*folder.glob("tables/*/*/*.parquet")])
    told = json.loads(succeed("rm", f"warehouse={folder}", "run=gone", "--yes", "--json"))
    assert (told["run"], told["kept_units"]) == ("gone", 1)
    stands(folder)
    assert told["files"] == loose - len([*folder.glob("tables/*/*/*.parquet")])
    succeed("gc", f"warehouse={folder}", "older_than=0")
    stands(folder)


def test_the_last_run_leaves_nothing(folder: Path) -> None:
    for run in ("gone", "kept"):
        out = succeed("rm", f"warehouse={folder}", f"run={run}", "--yes")
        assert out.startswith(f"deleted run {run}: ")
    succeed("gc", f"warehouse={folder}", "older_than=0")
    assert not [file for file in folder.rglob("*.parquet") if "index." not in file.name]
    assert not [*(folder / "steps").iterdir()]


class KilledError(BaseException):
    pass


@pytest.mark.slow
def test_killed_at_any_moment_it_can_be_made_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is struck before each of its writes and deletions in turn."""
    num_struck = left = 0
    for name in ("delete", "delete_folder", "write", "commit_next", "write_compacted"):
        real: Callable[..., Any] = getattr(removal, name)

        def strike(*given: Any, real: Callable[..., Any] = real, **more: Any) -> Any:
            nonlocal left, num_struck
            left -= 1
            if left < 0:
                num_struck += 1
                raise KilledError
            return real(*given, **more)

        monkeypatch.setattr(removal, name, strike)
    point = 0
    while True:
        left = point
        try:
            rm.remove(as_path(folder), "gone")
            break
        except KilledError:
            point += 1
        with connect(folder, "kept") as connection:
            runs = {row["run"] for row in query(connection, "from all_planned")}
            assert runs in ({"gone", "kept"}, {"kept"})
            assert [row["document_id"] for row in query(connection, "from gists")] == KEPT
    assert num_struck >= 4
    stands(folder)


def test_a_run_that_was_begun_again_after_a_kill_keeps_what_it_uses(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*given: object) -> None:
        raise KilledError

    with monkeypatch.context() as patch, pytest.raises(KilledError):
        patch.setattr(removal, "delete_unused_units", killed)
        rm.remove(as_path(folder), "gone")
    Warehouse(folder).plan("again", (GISTS, [OWN]))
    succeed("rm", f"warehouse={folder}", "run=gone", "--yes")
    rows = sql(folder, "select run, document_id from all_gists order by all")
    assert [tuple(row.values()) for row in rows] == [("again", "d2"), ("kept", "d1")]


@pytest.mark.parametrize("at", range(4))
def test_a_removal_that_stood_still_deletes_no_more(
    folder: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """Its leases have lapsed, and a run that began meanwhile uses what it has not deleted yet."""
    asked = []

    def has_lapsed(held: Lease) -> bool:
        asked.append(held)
        return len(asked) > 2 * at  # two leases each time

    before = {file for file in folder.rglob("*.parquet") if "runs" not in file.parts}
    with monkeypatch.context() as patch:
        patch.setattr(Lease, "has_lapsed", has_lapsed)
        line = gistmill("rm", f"warehouse={folder}", "run=gone", "--yes")
    after = {file for file in folder.rglob("*.parquet") if "runs" not in file.parts}
    assert line.returncode == 4 and "the removal was suspended for too long" in line.stderr
    assert len(before - after) <= at
    assert (folder / "removed" / "gone.parquet").exists()
    Warehouse(folder).plan("again", (ANSWERS, [ASKED]))
    succeed("rm", f"warehouse={folder}", "run=gone", "--yes")
    if not at:
        rows = sql(folder, "from answers order by question_id", "run=again")
        assert [row["question_id"] for row in rows] == ["q1", "q2"]


def test_a_run_that_prepared_meanwhile_prepares_again(folder: Path) -> None:
    """What tells it: the number of removals, which grows before anything is deleted."""
    before = count_removals(as_path(folder))
    with lease(as_path(folder) / "runs", removal.LEASE):
        pass
    assert count_removals(as_path(folder)) == before + 1


@pytest.mark.slow
def test_a_run_that_saw_a_removal_while_it_planned_plans_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The removal happens between the look at what is committed and the plan's being written."""
    night = FinishedRun(tmp_path)
    RunFolder(night.warehouse, "night").write_report("made")
    real, planned = RunFolder.plan, list[str]()

    def plan(self: RunFolder, *given: Any) -> None:
        if not planned:
            rm.remove(as_path(night.warehouse), "other")
        planned.append(self.path.name)
        real(self, *given)

    Warehouse(night.warehouse).plan("other")
    monkeypatch.setattr(RunFolder, "plan", plan)
    succeed(*night.words(night.warehouse))
    assert planned == ["night", "night"]


def test_what_is_at_work_is_refused(folder: Path) -> None:
    words = ("rm", f"warehouse={folder}", "run=gone", "--yes")
    with lease(as_path(folder) / "runs" / "gone", LEASE):
        told = refused(*words)
    assert told.startswith("run=gone: being executed on ") and f"process {os.getpid()}" in told
    with lease(as_path(folder) / "compacted", compaction.LEASE):
        assert "another process compacts it; try again later" in refused(*words)
    with lease(as_path(folder) / "runs", removal.LEASE):
        assert "another process removes a run" in refused(*words)
    assert (folder / "runs" / "gone" / "units.parquet").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["run=gonne", "--yes"], "run=gonne: not in {}; nearest: gone"),
        ([], "run= is missing; name the run to delete"),
        (["--yes", "step=a"], "'step=a': unknown option; there are warehouse, run=..."),
    ],
)
def test_mistakes(words: list[str], told: str, tmp_path: Path) -> None:
    Warehouse(tmp_path).plan("gone")
    Warehouse(tmp_path).plan("kept")
    line = refused("rm", f"warehouse={tmp_path}", *words)
    assert line == told.format(tmp_path)


@pytest.mark.slow
def test_without_a_terminal_it_must_be_said(tmp_path: Path) -> None:
    Warehouse(tmp_path).plan("gone")
    told = one_line(own_process("rm", f"warehouse={tmp_path}", "run=gone"))
    assert told == "run=gone: deletes it for good; add --yes"
    assert (tmp_path / "runs" / "gone").exists()


class Typed(io.StringIO):
    """What is typed in a terminal; `end`: Ctrl-C instead of the end of it."""

    def __init__(self, text: str, end: type[BaseException] | None = None) -> None:
        super().__init__(text)
        self._end = end

    def isatty(self) -> bool:
        return True

    def readline(self, size: int | None = -1) -> str:  # type: ignore[override]
        if self._end:
            raise self._end
        return super().readline() if size is None else super().readline(size)


@pytest.mark.parametrize(
    ("typed", "said"),
    [(Typed("kept\n"), "not deleted, as its name was not repeated"), (Typed(""), "not deleted"),
     (Typed("", KeyboardInterrupt), "not deleted")],
)  # fmt: skip
def test_it_asks_for_the_name_again(
    typed: Typed, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Warehouse(tmp_path).plan("gone")
    monkeypatch.setattr(sys, "stdin", typed)
    done = gistmill("rm", f"warehouse={tmp_path}", "run=gone")
    assert done.returncode == 2
    assert done.stderr.endswith(f"gistmill: run=gone: {said}\n")
    assert (tmp_path / "runs" / "gone").exists()


def test_the_labels_of_people_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Warehouse(tmp_path).plan("gone")
    of_answer = dict.fromkeys(("method", "document_id", "question_id", "answer_sha"), "x")
    add_labels(as_path(tmp_path) / "runs" / "gone", "ann", [{**of_answer, "label": "yes"}])
    damaged = tmp_path / "runs" / "gone" / "people" / "bob.parquet"
    damaged.write_bytes(b"x")
    monkeypatch.setattr(sys, "stdin", Typed("gone\n"))
    done = gistmill("rm", f"warehouse={tmp_path}", "run=gone")
    assert "(gone) to delete it and 1 label of people for good" in done.stderr
    assert ", 1 label of people" in succeeded(done)
    assert not damaged.exists()


@pytest.mark.slow
def test_from_a_folder_of_the_warehouse_it_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deleting it would leave the rest of the command without its way to the warehouse."""
    monkeypatch.chdir(folder / "runs" / "gone")
    told = refused("rm", "warehouse=../..", "run=gone", "--yes")
    assert told.endswith("gone: rm may delete this folder of the warehouse; call it elsewhere")
    monkeypatch.chdir(folder)
    succeed("rm", "warehouse=.", "run=gone", "--yes")
    stands(folder)
