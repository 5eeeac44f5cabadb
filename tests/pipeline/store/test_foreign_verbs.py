"""The reading verbs over damaged and foreign files: one line each, and no traceback."""

import json
import shutil
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.core.errors import DamagedError
from pipeline.store.runs.run_folder import RunFolder
from tests.pipeline.store.test_foreign_files import Damage, filled, half
from tests.support.command import gistmill, one_line
from tests.support.runs.finished_run import FinishedRun

pytestmark = [pytest.mark.slow, pytest.mark.sampled]

VERBS = {
    "report": ["report"], "status": ["status"], "trace": ["trace", "q1"],
    "sql": ["sql", "select question_id, answer from all_answers"], "ls": ["ls"],
    "corpus": ["report", "--corpus"], "show": ["show", "d1"],
}  # fmt: skip
WITH_KEY = ("report", "status", "trace", "ls", "show")  # whose JSON has the key left_out


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    return FinishedRun(tmp_path_factory.mktemp("made"))


@pytest.fixture
def warehouse(made: FinishedRun, tmp_path: Path) -> Path:
    return made.copied(tmp_path)


def read(warehouse: Path, verb: str, *words: str) -> "CompletedProcess[str]":
    return gistmill(*VERBS[verb], f"warehouse={warehouse}", *words)


def lines(done: "CompletedProcess[str]") -> list[str]:
    return [line.removeprefix("gistmill: left out ") for line in done.stderr.splitlines()]


def survives(warehouse: Path, verb: str, file: Path, why: str, *words: str) -> Any:
    """The JSON of a verb that names the file once and ends in exit code 0."""
    done = read(warehouse, verb, "--json", *words)
    assert done.returncode == 0, done.stderr
    (line,) = lines(done)
    assert line.startswith(f"{file}: ")
    assert why in line
    found = json.loads(done.stdout)
    if verb in WITH_KEY:
        assert [f"{row['file']}: {row['why']}" for row in found["left_out"]] == [line]
    return found


def refuses(warehouse: Path, verb: str, file: Path, why: str, *words: str) -> None:
    """A verb that cannot do without the file says so in one line."""
    done = read(warehouse, verb, *words)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"gistmill: {file}: ")
    assert why in line


def folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def edited(**values: Any) -> Damage:
    """JSON with other values; null: without that key."""

    def damage(file: Path) -> None:
        content = {**json.loads(file.read_text()), **values}
        file.write_text(json.dumps({k: v for k, v in content.items() if v is not None}))

    return damage


@pytest.mark.parametrize(
    ("damage", "why"),
    [(filled(b""), "Invalid JSON: EOF"), (filled(b'{"name": "step"}'), "stage: Field required"),
     (edited(settings=None), "settings: Field required"),
     (folder, "cannot be read (Is a directory)")],
)  # fmt: skip
def test_a_damaged_step(made: FinishedRun, warehouse: Path, damage: Damage, why: str) -> None:
    file = warehouse / "steps" / f"{made.small.step('answers').id}.json"
    damage(file)
    found = survives(warehouse, "status", file, why)
    counted = {step["step_id"]: step["ok"] for step in found["steps"]}
    assert counted[file.stem] == 3  # its rows are there all the same
    assert survives(warehouse, "trace", file, why)["question"]["question_id"] == "q1"
    prepared = made.small.prepared()
    with pytest.raises(DamagedError) as caught:  # a run is refused
        RunFolder(warehouse, "night").plan(prepared.run.steps, prepared.plan.file)
    assert caught.value.file == str(file)
    assert "move the file and the step's folders" in caught.value.why


@pytest.mark.parametrize(
    ("damage", "why"),
    [(half, "Invalid JSON"), (filled(b'{"launches": [1, 2]}'), "launches.0: Input should be")],
)
def test_damaged_provenance(warehouse: Path, damage: Damage, why: str) -> None:
    file = warehouse / "runs" / "night" / "provenance.json"
    damage(file)
    found = survives(warehouse, "report", file, why)
    assert found["rows"][0]["counts"]["n"] == 3
    assert found["foot"]["corpus"] == "tables -"
    with pytest.raises(DamagedError, match="delete it and run the same command again"):
        RunFolder(warehouse, "night").start({}, {}, True)


@pytest.mark.parametrize(
    ("content", "why"),
    [("report: {stages: [gist", "not YAML"), ("", "Input should be a valid dictionary")],
)
def test_a_damaged_config(made: FinishedRun, warehouse: Path, content: str, why: str) -> None:
    """What it says is needed by some verbs, which name it; the others read on."""
    file = warehouse / "runs" / "night" / "config.yaml"
    file.write_text(content)
    for verb in ("report", "status", "trace"):
        refuses(warehouse, verb, file, why)
    for verb in ("sql", "corpus"):
        done = read(warehouse, verb)
        assert (done.returncode, done.stderr) == (0, "")
    done = read(warehouse, "ls")
    assert done.returncode == 0 and f"left out {file}: {why}" in done.stderr
    done = gistmill(*made.words(warehouse))
    assert done.returncode == 1
    assert f"{file}: {why}" in done.stderr
    assert "delete it and run the same command again" in done.stderr


@pytest.mark.parametrize("report", ["3", "{stages: [1], columns: []}"])
def test_a_config_of_another_version(warehouse: Path, report: str) -> None:
    (warehouse / "runs" / "night" / "config.yaml").write_text(f"report: {report}")
    line = one_line(read(warehouse, "report"))
    assert line == "run=night: started by an earlier version of gistmill; start it again"


def other_rows(file: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), file)


def other_types(file: Path) -> None:
    rows = pq.read_table(file)
    pq.write_table(rows.set_column(1, "unit", pa.array(range(rows.num_rows))), file)


@pytest.mark.parametrize(
    ("damage", "why"),
    [(half, "cannot be read"), (other_rows, "lacks the columns step_id"),
     (other_types, "Field unit has incompatible types: int64 vs string")],
)  # fmt: skip
def test_damaged_units_hide_their_run_alone(warehouse: Path, damage: Damage, why: str) -> None:
    runs = warehouse / "runs"
    shutil.copytree(runs / "night", runs / "second")  # the later one
    file = runs / "second" / "units.parquet"
    damage(file)
    for verb in ("status", "sql"):
        survives(warehouse, verb, file, why, "run=night")
    assert [row["run"] for row in survives(warehouse, "ls", file, why)["runs"]] == ["night"]
    for words in ([], ["run=second"]):  # another run's numbers are not what was asked for
        refuses(warehouse, "report", file, why, *words)
    with pytest.raises(DamagedError, match="start the run again"):
        RunFolder(warehouse, "second").missing_from(runs / "night/units.parquet", "document_id")


@pytest.mark.parametrize("content", [b'{"launch": ', b"[]"])
def test_damaged_heartbeats(warehouse: Path, content: bytes) -> None:
    alive = warehouse / "runs" / "night" / "alive"
    alive.mkdir(exist_ok=True)
    for name in ("progress", "good.json", "bad.json"):
        heartbeat: dict[str, Any] = {"worker": name, "launch": "one", "documents": {}}
        (alive / name).write_text(json.dumps(heartbeat))
    (alive / "bad.json").write_bytes(content)
    with pytest.warns(Warning) as caught:
        found = RunFolder(warehouse, "night").alive("one")
    assert [heartbeat["worker"] for heartbeat in found] == ["good.json"]
    assert [str(one.message).split(": ")[0] for one in caught] == [str(alive / "bad.json")]
    (alive / "progress").write_bytes(content)
    survives(warehouse, "status", alive / "progress", "delete it")


def test_odd_folders_and_a_copy_of_a_step(warehouse: Path) -> None:
    table = warehouse / "tables" / "scores"
    (step,) = table.iterdir()
    for name in ("it's", "a [b] *?", '100% "é"'):
        (table / name).mkdir()
    shutil.copytree(step, table / f"{step.name} (copy's)")
    for verb in ("report", "status", "sql"):
        done = read(warehouse, verb)
        assert done.returncode == 0, done.stderr
        assert all("its rows are of the step_id score-" in line for line in lines(done))
        assert len(lines(done)) == 2


def test_a_link_to_a_shard_elsewhere(made: FinishedRun, warehouse: Path) -> None:
    shard = made.shard("answers")
    link = warehouse / shard.relative_to(made.warehouse)
    link.unlink()
    link.symlink_to(shard)
    for verb in VERBS:
        done = read(warehouse, verb)
        assert (done.returncode, done.stderr) == (0, ""), verb


def test_all_at_once_in_every_verb(made: FinishedRun, warehouse: Path) -> None:
    """Each file is named once; what is left is read."""
    bad = [warehouse / made.shard(table).relative_to(made.warehouse)
           for table in ("answers", "calls", "ratings")]  # fmt: skip
    bad += [warehouse / "steps" / f"{made.small.step('scores').id}.json"]
    for file in bad:
        half(file)
    for verb in VERBS:
        done = read(warehouse, verb)
        assert done.returncode == 0, done.stderr
        assert sorted(line.split(": ")[0] for line in lines(done)) == sorted(map(str, bad))
    found = json.loads(read(warehouse, "sql", "--json").stdout)
    assert [row["question_id"] for row in found] == ["q3"]  # those of d1 are lost


def test_many_are_named_in_a_few_lines(made: FinishedRun, warehouse: Path) -> None:
    shard = warehouse / made.shard("answers").relative_to(made.warehouse)
    for number in range(30):
        shard.with_name(f"{number:016x}.1.parquet").touch()
    done = read(warehouse, "sql")
    assert done.returncode == 0
    assert len(done.stderr.splitlines()) == 21
    assert "left out 10 more files; gistmill sql 'from left_out'" in done.stderr


def of_something_else(folder: Path) -> None:
    for name in ("tables", "runs", "steps/x.json", "runs/x"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "runs" / "night.txt").touch()


@pytest.mark.parametrize(
    "make", [lambda folder: None, Path.mkdir, filled(b"a file"), of_something_else]
)
def test_no_warehouse(tmp_path: Path, make: Damage) -> None:
    make(tmp_path / "elsewhere")
    for verb in VERBS:
        line = one_line(read(tmp_path / "elsewhere", verb))
        assert line.endswith(": no run there; start one with gistmill run, or set warehouse=")
