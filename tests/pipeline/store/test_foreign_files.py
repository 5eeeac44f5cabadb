"""Damaged and foreign files: verbs that read leave each out and name it once; the rest is there."""

import asyncio
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from upath import UPath

from pipeline.asking.replies import SharedReplies
from pipeline.core.calls import Call
from pipeline.core.errors import CommandError, DamagedError, LeftOutWarning, UsageError
from pipeline.core.rows import RECORDS, Document
from pipeline.store import Shards, connect
from pipeline.store.sql.connection import query
from tests.support.command import gistmill, one_line
from tests.support.runs.finished_run import FinishedRun

pytestmark = pytest.mark.sampled

Damage = Callable[[Path], object]
TABLES = ("documents", "questions", "pages", "gists", "lookups", "answers", "ratings", "scores",
          "calls")  # fmt: skip
VERBS = {
    "report": ["report"], "status": ["status"], "trace": ["trace", "q1"],
    "sql": ["sql", "select question_id, answer from all_answers"], "ls": ["ls"],
    "corpus": ["report", "--corpus"], "show": ["show", "d1"],
}  # fmt: skip


@pytest.fixture
def warehouse(made: FinishedRun, tmp_path: Path) -> Path:
    return made.copied(tmp_path)


def half(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])


def filled(content: bytes) -> Damage:
    return lambda file: file.write_bytes(content)


def changed(change: Callable[[Any], Any]) -> Damage:
    """The same file with other rows or columns."""
    return lambda file: pq.write_table(change(pq.read_table(file)), file)


def footer_garbled(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[:-208] + b"\xff" * 200 + content[-8:])


def garbled(file: Any) -> None:
    """Damage between head and footer, which is noticed when rows are read."""
    content = file.read_bytes()
    file.write_bytes(content[:4] + b"\xff" * 196 + content[200:])


def link_to_nothing(file: Path) -> None:
    file.unlink()
    file.symlink_to(file.parent / "gone")


def with_column(column: str, values: Callable[[Any], Any]) -> Damage:
    """The same file with other values in a column, made from the rows."""
    return changed(lambda t: t.set_column(t.column_names.index(column), column, values(t)))


DAMAGES: dict[str, tuple[Damage, str]] = {
    "no bytes": (filled(b""), "cannot be read"),
    "half": (half, "cannot be read"),
    "footer garbled": (footer_garbled, "cannot be read"),
    "a dangling link": (link_to_nothing, "cannot be read (no such file)"),
    "foreign": (lambda file: pq.write_table(pa.table({"a": [1]}), file), "1 rows, none were"),
    "a row doubled": (changed(lambda t: pa.concat_tables([t, t.slice(0, 1)])), "were written"),
    "a row lost": (changed(lambda t: t.slice(1)), "were written"),
    "without step": (changed(lambda t: t.drop_columns(["step_id"])), "lacks the columns step_id"),
    "a number as text": (with_column("num_lookups", lambda t: pc.cast(t["num_lookups"], "string")),
                         "Field num_lookups has incompatible types: string"),
}  # fmt: skip


def rows_by_table(connection: Any) -> dict[str, int]:
    return {table: len(query(connection, f"select unit from {table}")) for table in TABLES}


def shard(made: FinishedRun, warehouse: Path, table: str) -> Path:
    """The shard of a table in a copy of the warehouse."""
    return warehouse / made.shard(table).relative_to(made.warehouse)


@pytest.mark.parametrize(
    ("table", "kind"),
    [*(("answers", kind) for kind in DAMAGES), ("documents", "half"), ("calls", "half")],
)
def test_a_damaged_shard_is_left_out_and_named(
    made: FinishedRun, warehouse: Path, table: str, kind: str
) -> None:
    """By readers; a run is refused."""
    file = shard(made, warehouse, table)
    damage, why = DAMAGES[kind]
    with connect(warehouse) as connection:
        assert query(connection, "from left_out") == []
        num_rows = rows_by_table(connection)
    damage(file)
    with pytest.warns(LeftOutWarning) as caught, connect(warehouse) as connection:
        (row,) = query(connection, "from left_out")
        left = rows_by_table(connection)
        query(connection, "from units")  # reads footers, too
    assert [str(warning.message) for warning in caught] == [f"{row['file']}: {row['why']}"]
    assert row["file"] == str(file) and why in row["why"]
    assert f"delete tables/*/{file.parent.name}/{file.name} and run the same" in row["why"]
    lost = pq.read_metadata(made.shard(table)).num_rows
    assert left == {**num_rows, table: num_rows[table] - lost}
    with pytest.raises(CommandError) as raised:
        Shards(warehouse).committed(made.small.steps)
    assert str(raised.value).startswith(f"{file}: ")


@pytest.mark.parametrize(
    "damage",
    [Path.unlink, *(pytest.param(damage, marks=pytest.mark.slow)
                    for damage in (half, filled(b""), garbled))],
)  # fmt: skip
def test_a_shard_that_is_damaged_after_connecting_until_it_is_back(
    made: FinishedRun, warehouse: Path, damage: Damage
) -> None:
    file = shard(made, warehouse, "answers")
    content = file.read_bytes()
    with connect(warehouse) as connection:
        damage(file)
        with pytest.raises(DamagedError) as caught:
            query(connection, "select answer from answers")
        assert caught.value.file == str(file)
        assert "\n" not in str(caught.value)
        assert query(connection, "from gists")
        with pytest.raises(UsageError, match="sql: Conversion Error"):
            query(connection, "select 'a'::int from questions")
        file.write_bytes(content)
        assert len(query(connection, "from answers")) == 3


def test_rows_of_other_values_are_named_by_a_run(made: FinishedRun, warehouse: Path) -> None:
    """A null where the record has none: of no row that gistmill wrote."""
    file = shard(made, warehouse, "gists")
    with_column("num_words", lambda t: pa.nulls(t.num_rows, pa.int64()))(file)
    step = made.small.step("gists")
    with pytest.raises(DamagedError, match="row 0, num_words: Input should be a valid integer"):
        Shards(warehouse).load(RECORDS["gists"], step.id, file.name.split(".")[0])


def test_of_a_table_whose_plugin_is_not_loaded(made: FinishedRun, warehouse: Path) -> None:
    """Its other rows are there, unless SQL reserves the table's name; what else lies there is no
    table."""
    others = {"begun", "of somebody else", "others"}
    for name in others:
        (warehouse / "tables" / name / "x").mkdir(parents=True)
    for name in others - {"begun"}:
        pq.write_table(pa.table({"a": [1]}), warehouse / "tables" / name / "x" / "y.parquet")
    folder = (warehouse / "tables" / "scores").rename(warehouse / "tables" / "remarks")
    shutil.copytree(folder, folder.with_name("group"))
    other = folder / made.shard("scores").relative_to(made.warehouse / "tables" / "scores")
    other.write_bytes(b"PAR1")
    with pytest.warns(LeftOutWarning) as caught, connect(warehouse) as connection:
        assert len(query(connection, "from all_remarks")) > 0
        names = {row["name"] for row in query(connection, "show tables")}
        tables = {row["table_name"] for row in query(connection, "from shards")}
    assert "remarks" in names and names.isdisjoint({"group", *others})
    assert "answers" in tables and tables.isdisjoint(others)
    assert [str(warning.message).partition(": ")[0] for warning in caught] == [str(other)]


def test_a_damaged_shared_reply_is_asked_again(tmp_path: Path) -> None:
    one = Call.about(Document(document_id="d1"), reply="One.")
    shared = SharedReplies(UPath(tmp_path))
    for content in (b"", b"{", b"[]", b"\xff", b'{"document_id": 3}'):
        (tmp_path / "sha.json").write_bytes(content)
        assert asyncio.run(shared.find("sha")) is None
        assert asyncio.run(shared.keep("sha", one)) == one


@pytest.mark.parametrize("most_copied", [8_000_000, 0])
def test_on_an_object_store(
    made: FinishedRun, monkeypatch: pytest.MonkeyPatch, most_copied: int
) -> None:
    """Under the lock, too, which lets no other file there be read."""
    monkeypatch.setattr("pipeline.store.sql.connection._MOST_COPIED", most_copied)
    bad = {"answers": b"", "gists": b"PAR1 and no more", "ratings": b"PAR1" * 40_000}
    names = {str(made.shard(table).relative_to(made.warehouse)): bad[table] for table in bad}
    store = UPath(f"memory://foreign/{most_copied}")
    for file in (file for file in made.warehouse.rglob("*") if file.is_file()):
        name = str(file.relative_to(made.warehouse))
        (store / name).parent.mkdir(parents=True, exist_ok=True)
        (store / name).write_bytes(names.get(name, file.read_bytes()))
    with pytest.warns(LeftOutWarning), connect(store) as connection:
        left_out = query(connection, "from left_out")
        assert {row["file"] for row in left_out} == {f"{store}/{name}" for name in names}
        assert [row["question_id"] for row in query(connection, "from answers")] == ["q3"]
        assert query(connection, "from footers")
        with pytest.raises(UsageError, match="lifts the locks"):
            query(connection, f"from read_text('read://{store}/gistmill.json')")


def read(warehouse: Path, verb: str, *words: str) -> "CompletedProcess[str]":
    return gistmill(*VERBS[verb], f"warehouse={warehouse}", *words)


def survives(warehouse: Path, verb: str, file: Path, why: str, *words: str) -> Any:
    """The JSON of a verb that names the file once and ends in exit code 0."""
    done = read(warehouse, verb, "--json", *words)
    assert done.returncode == 0, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"gistmill: left out {file}: ") and why in line
    printed = json.loads(done.stdout)
    (row,) = printed["left_out"]
    assert line.endswith(f"{row['file']}: {row['why']}")
    return printed


def refused_for(warehouse: Path, verb: str, file: Path, why: str) -> None:
    done = read(warehouse, verb)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"gistmill: {file}: ") and why in line


CONFIG, UNITS = ("runs/night/config.yaml", "runs/night/units.parquet")
SOME = ("report", "status", "trace")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "damage", "why", "reading"),
    [("gistmill.json", filled(b""), "Invalid JSON: EOF", SOME),
     ("steps/{}.json", filled(b"\xff"), "Invalid JSON", SOME),
     ("runs/night/provenance.json", half, "Invalid JSON", ("report",)),
     (CONFIG, filled(b"report: {stages: [gist"), "not YAML", ()),
     (CONFIG, filled(b""), "Input should be a valid dictionary", ()),
     (UNITS, half, "cannot be read", ()),
     (UNITS, changed(lambda t: pa.table({"a": [1]})), "lacks the columns step_id", ())],
)  # fmt: skip
def test_a_damaged_file_of_a_run(
    made: FinishedRun, warehouse: Path, name: str, damage: Damage, why: str, reading: Sequence[str]
) -> None:
    """What does not need it goes on and names it; a run is refused, but writes its plan anew."""
    file = warehouse / name.format(made.small.step("answers").id)
    damage(file)
    for verb in reading:
        survives(warehouse, verb, file, why)
    if name in (CONFIG, UNITS):
        for verb in SOME:
            refused_for(warehouse, verb, file, why)
    again = gistmill(*made.words(warehouse))
    if name == UNITS:
        assert again.returncode == 0 and again.stderr.count(f"gistmill: left out {file}: ") == 1
        assert read(warehouse, "status").returncode == 0
        return
    assert again.returncode == 1 and f"gistmill: {file}: " in again.stderr
    if name != CONFIG:  # its rows are there all the same
        counts = survives(warehouse, "status", file, why)["steps"]
        assert [step["ok"] for step in counts if step["step_id"].startswith("answer-")] == [3]


@pytest.mark.slow
def test_damaged_units_hide_their_run_alone(warehouse: Path) -> None:
    shutil.copytree(warehouse / "runs" / "night", warehouse / "runs" / "second")  # the later one
    file = warehouse / "runs" / "second" / "units.parquet"
    half(file)
    survives(warehouse, "status", file, "cannot be read", "run=night")
    listed = survives(warehouse, "ls", file, "cannot be read")
    assert [row["run"] for row in listed["runs"]] == ["night"]
    # Another run's numbers are not what was asked for.
    for verb in ("report", "sql"):
        refused_for(warehouse, verb, file, "start the run again")


@pytest.mark.slow
def test_all_at_once_in_every_verb(made: FinishedRun, warehouse: Path) -> None:
    """Each file is named once, many in a few lines; what is left is read, beside folders of odd
    names."""
    for name in ("it's", "a [b] *?", '100% "é"'):
        (warehouse / "tables" / "scores" / name).mkdir()
    bad = [shard(made, warehouse, table) for table in ("answers", "calls", "ratings")]
    bad += [warehouse / "steps" / f"{made.small.step('scores').id}.json"]
    for file in bad:
        half(file)
    for verb in VERBS:
        done = read(warehouse, verb)
        assert done.returncode == 0, done.stderr
        files = [line.split(": ")[1] for line in done.stderr.splitlines()]
        assert sorted(files) == sorted(f"left out {file}" for file in bad)
    answers = json.loads(read(warehouse, "sql", "--json").stdout)
    assert [row["question_id"] for row in answers] == ["q3"]  # those of d1 are lost
    for number in range(30):
        bad[0].with_name(f"{number:016x}.1.parquet").touch()
    done = read(warehouse, "sql")
    assert done.returncode == 0 and len(done.stderr.splitlines()) == 21
    assert "left out 14 more files; gistmill sql 'from left_out'" in done.stderr


def of_something_else(folder: Path) -> None:
    for name in ("tables", "runs", "steps/x.json", "runs/x"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "runs" / "night.txt").touch()


@pytest.mark.slow
@pytest.mark.parametrize("make", [lambda folder: None, filled(b"a file"), of_something_else])
def test_no_warehouse(tmp_path: Path, make: Damage) -> None:
    make(tmp_path / "elsewhere")
    before = sorted(tmp_path.rglob("*"))
    for verb in VERBS:
        line = one_line(read(tmp_path / "elsewhere", verb))
        assert line.endswith(": no run there; start one with gistmill run, or set warehouse=")
    assert sorted(tmp_path.rglob("*")) == before
