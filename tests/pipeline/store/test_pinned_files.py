"""`gc older_than=0` beside what reads and runs: files that are read stay, others go."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipeline.files.place import as_path
from pipeline.store import connect
from pipeline.store.sql.connection import query
from pipeline.store.upkeep.compaction import compact
from pipeline.store.upkeep.garbage import collect
from tests.support.command import succeed
from tests.support.engines.simulated import SIMULATED
from tests.support.runs.finished_run import FinishedRun
from tests.support.texts.small_corpus import UNIFORM, document, question, write

NOTHING = 0  # files deleted


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    return FinishedRun(tmp_path_factory.mktemp("made"))


@pytest.fixture
def warehouse(made: FinishedRun, tmp_path: Path) -> Path:
    return made.copied(tmp_path)


def freed(warehouse: Path) -> int:
    found = collect(warehouse, older_than=0)
    assert found is not None
    return found.files


def shards(warehouse: Path) -> int:
    return len([*(warehouse / "tables").rglob("*.parquet")])


@pytest.mark.parametrize("num_before", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_files_stay_while_a_connection_reads_them(warehouse: Path, num_before: int) -> None:
    """`num_before`: compactions before the connection."""
    tables = ("answers", "gists", "calls", "pages", "ratings", "scores")
    for _ in range(num_before):
        compact(warehouse, least=2)
        freed(warehouse)
    with connect(warehouse) as whole:
        expected = [query(whole, f"from {table} order by all") for table in tables]
    num_shards = shards(warehouse)
    with connect(warehouse) as connection:
        compact(warehouse, least=1)
        assert freed(warehouse) == NOTHING
        assert shards(warehouse) == num_shards
        assert [query(connection, f"from {table} order by all") for table in tables] == expected
    assert freed(warehouse) >= num_shards
    assert shards(warehouse) == 0
    with connect(warehouse) as later:
        assert [query(later, f"from {table} order by all") for table in tables] == expected
    assert [*(warehouse / "readers").iterdir()] == []


@pytest.mark.slow
def test_the_lease_of_a_reader_that_was_killed_is_over(warehouse: Path) -> None:
    held = "held = connect(sys.argv[1]); print('reads', flush=True)"
    script = f"import os, sys; from pipeline.store import connect; {held}; os.kill(os.getpid(), 9)"
    killed = subprocess.run([sys.executable, "-c", script, str(warehouse)], stdout=-1, text=True)
    assert (killed.stdout, killed.returncode) == ("reads\n", -9)
    assert len([*(warehouse / "readers").iterdir()]) == 1
    compact(warehouse, least=1)
    assert freed(warehouse) > NOTHING
    assert [*(warehouse / "readers").iterdir()] == []


def test_what_a_removed_run_had_planned_stays_while_it_is_read(warehouse: Path) -> None:
    num_shards = shards(warehouse)
    with connect(warehouse):
        succeed("rm", f"warehouse={warehouse}", "run=night", "--yes")
        found = collect(as_path(warehouse), older_than=0)
        assert found is not None and found.is_waiting
        assert shards(warehouse) == num_shards
    found = collect(as_path(warehouse), older_than=0)
    assert found is not None and not found.is_waiting and found.files > NOTHING
    assert shards(warehouse) == 0


@pytest.mark.slow
def test_two_runs_beside_collections_that_never_end(tmp_path: Path) -> None:
    """Of an engine that takes its time, so that there are collections beside them."""
    write(tmp_path / "corpus", [document(n) for n in range(1, 31)],
          [question(n, of=n) for n in range(1, 31)])  # fmt: skip
    warehouse = tmp_path / "warehouse"
    words = ["run", "corpus=tables", f"corpus.path={tmp_path / 'corpus'}", *SIMULATED,
             "engine.decode_tokens_per_second=50", *UNIFORM, f"warehouse={warehouse}",
             "cluster=inline"]  # fmt: skip
    command = [sys.executable, "-m", "jobs", *words]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    runs = [subprocess.Popen([*command, f"run={name}", f"methods={method}"], stderr=-1, stdout=-1,
                             text=True, env=environment)
            for name, method in (("a", "readagent_p"), ("b", "readagent_s"))]  # fmt: skip
    collections = deleted = 0  # collections that deleted something, and the files they did
    while any(run.poll() is None for run in runs):
        if (warehouse / "tables").is_dir():
            compact(warehouse, least=1)
            found = collect(warehouse, older_than=0)
            num_files = found.files if found else 0
            collections += num_files > 0
            deleted += num_files
        time.sleep(0.01)
    for run in runs:
        out, err = run.communicate()
        assert run.returncode == 0, out + err
        assert "Traceback" not in err
    assert collections > 1 and deleted > 100
    rows = {name: query(connect(warehouse, name), "from answers") for name in "ab"}
    assert {name: len(found) for name, found in rows.items()} == {"a": 30, "b": 30}
