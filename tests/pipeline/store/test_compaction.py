"""Compaction and collection: the same rows, at every moment and after every crash."""

import dataclasses
import json
import os
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from upath import UPath

from jobs.run.launch import compact_if_worth_it, compact_periodically
from pipeline.core.calls import Call
from pipeline.core.errors import AccountingError, DamagedError
from pipeline.core.rows import RECORDS
from pipeline.store import Shards, connect, upkeep
from pipeline.store.shards.shard_index import Index, newest_index
from pipeline.store.sql.connection import query
from pipeline.store.upkeep import Compaction, Freed, collect, compact, remove_run
from pipeline.work.units import Unit
from stages.tables.pages import Gist
from tests.jobs.run.test_graceful_stop import until
from tests.pipeline.store.test_foreign_files import Damage, changed, garbled, half
from tests.support.clusters.s3_server import BUCKET, names, s3_server
from tests.support.command import gistmill
from tests.support.runs.warehouse import Warehouse, answer, chunk, document_unit, gist, step

GISTS, OTHER_GISTS = step("gists"), step("gists", version=2)
ANSWERS = step("answers", "full_text")
STEPS = (GISTS, OTHER_GISTS, ANSWERS)
Rows = dict[tuple[str, str, str, int], list[dict[str, Any]]]
"""Of every shard, by table, step, unit and attempt."""


def call(index: int, document_id: str = "d1") -> Call:
    values = {"stage": "gist", "prompt": "gist", "attempt": 1, "prompt_tokens": 7, "reply": "One."}
    return Call.about(gist(index, document_id=document_id), call_index=index, **values)


def unit_of(of: Any, number: int) -> Unit:
    document = f"d{number % 7}"
    if of is ANSWERS:
        return chunk(of, document, *(f"q{number}-{i}" for i in range(1 + number % 3)))
    return document_unit(of, f"{document}-{number}")


def commit_some(warehouse: Warehouse, draw: random.Random, numbers: range) -> None:
    """Random attempts at units of three steps, with the calls of some."""
    for number in numbers:
        of = draw.choice(STEPS)
        for attempt in draw.choice([[1], [1], [1], [1, 2], [2], [3, 1]]):
            unit = replace(unit_of(of, number), attempt=attempt)
            size, about = draw.randrange(6), unit.document_id
            answers = [answer(q, about, answer=f"{q} {attempt}") for q in unit.inputs]
            text = f"{unit.unit} {attempt} {'x' * size}"
            warehouse.commit(of, unit, answers or [gist(i, text, about) for i in range(size)])
            if draw.random() < 0.5:
                calls = [call(i, about) for i in range(draw.randrange(3))]
                warehouse.commit(of, unit, calls, Call)


def stored(folder: Path) -> Rows:
    """Every shard in tables/ and its rows, read by pyarrow alone."""
    shards = {}
    for path in (folder / "tables").glob("*/*/*.parquet"):
        table, step_id, name = path.parts[-3:]
        unit, attempt, _ = name.split(".")
        rows = pq.read_table(pa.BufferReader(path.read_bytes())).to_pylist()
        shards[table, step_id, unit, int(attempt)] = rows
    return shards


def as_text(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    return [json.dumps(row, default=str, sort_keys=True) for row in rows]


def agrees(folder: Path, expected: Rows) -> None:
    """Every way to read the warehouse gives the rows in `expected`."""
    shards, attempts = Shards(folder), dict[tuple[str, ...], int]()
    for *key, attempt in sorted(expected):
        attempts[tuple(key)] = attempt  # the highest is the last
    for of in STEPS:
        for record in (of.writes, Call):
            units = {k[2]: n for k, n in attempts.items() if k[:2] == (record.table, of.id)}
            assert shards.units(record.table, of.id) == units
    for (table, step_id, unit, attempt), rows in expected.items():
        record = RECORDS[table]
        loaded = shards.load(record, step_id, unit, attempt)
        fields = [field.name for field in dataclasses.fields(record)]
        values = [{name: row[name] for name in fields} for row in rows]
        assert as_text(map(dataclasses.asdict, loaded)) == as_text(values)
    with connect(folder) as connection:
        for table in ("gists", "answers", "calls"):
            shown = query(connection, f"from raw_{table}")
            last = [row for key, rows in expected.items() for row in rows
                    if key[0] == table and attempts[key[:3]] == key[3]]  # fmt: skip
            assert sorted(as_text(shown)) == sorted(as_text(last))
        assert sorted(connection.execute("from raw_shards").fetchall()) == sorted(attempts)
        footers = connection.execute("select file_name, decode(key) from footers").fetchall()
    keys = [f"gistmill.{key}" for key in ("num_rows", "problems", "started_at", "worker")]
    in_footers = [("/".join(name.split("/")[-3:]), key) for name, key in footers
                  if key != "ARROW:schema"]  # fmt: skip
    assert sorted(in_footers) == sorted(
        (f"{table}/{step_id}/{unit}.{attempt}.parquet", key)
        for (table, step_id, unit), attempt in attempts.items() if table != "calls" for key in keys
    )  # fmt: skip


@pytest.fixture
def warehouse(warehouse: Warehouse) -> Warehouse:
    warehouse.plan("night")
    return warehouse


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(6))
def test_the_same_rows_before_and_after(
    warehouse: Warehouse, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(seed)
    for name, size in {"_GROUP_BYTES": 500, "_BATCH_BYTES": 9_000}.items():
        monkeypatch.setattr(upkeep, name, draw.choice([1, size, 10**9]))
    expected: Rows = {}
    for turn in range(4):
        commit_some(warehouse, draw, range(20 * turn, 20 * turn + 20))
        expected |= stored(warehouse.folder)
        agrees(warehouse.folder, expected)
        assert compact(warehouse.folder, least=draw.choice([1, 10]))
        agrees(warehouse.folder, expected)
        if draw.random() < 0.7:
            collect(warehouse.folder, older_than=0)
            agrees(warehouse.folder, expected)
    compact(warehouse.folder, least=1)
    collect(warehouse.folder, older_than=0)
    assert stored(warehouse.folder) == {}
    agrees(warehouse.folder, expected)


def test_files_are_few_and_sorted_by_document(warehouse: Warehouse) -> None:
    commit_some(warehouse, random.Random(1), range(20))
    assert compact(warehouse.folder) == Compaction()
    assert not (warehouse.folder / "compacted").exists()
    num_shards = len(stored(warehouse.folder))
    assert compact(warehouse.folder, least=1) == Compaction(shards=num_shards, files=3)
    assert compact(warehouse.folder, least=1) == Compaction()
    commit_some(warehouse, random.Random(1), range(20, 60))
    compact(warehouse.folder, least=1)
    files = index_of(warehouse).files()
    assert sorted(file.partition("/")[0] for file in files) == ["answers", "calls", "gists"]
    for file in files:
        documents = pq.read_table(warehouse.folder / "compacted" / file)["document_id"].to_pylist()
        assert documents == sorted(documents)


def test_replaced_files_stay_for_the_retention(warehouse: Warehouse) -> None:
    commit_some(warehouse, random.Random(1), range(20))
    expected = stored(warehouse.folder)
    compact(warehouse.folder, least=1)
    assert collect(warehouse.folder) == Freed(files=0, bytes=0, is_waiting=False)
    assert stored(warehouse.folder) == expected
    for file in warehouse.folder.glob("compacted/index.*"):
        os.utime(file, (time.time() - 90_000,) * 2)
    sizes = [p.stat().st_size for p in (warehouse.folder / "tables").rglob("*.parquet")]
    assert collect(warehouse.folder) == Freed(len(sizes), sum(sizes), is_waiting=False)
    agrees(warehouse.folder, expected)


def test_files_of_an_index_between_stay_for_the_retention(warehouse: Warehouse) -> None:
    """A reader has chosen the second of three indexes, whose file is older than the retention."""
    folder, files = warehouse.folder / "compacted", list[Path]()
    for number, ages in enumerate([(90, 90), (60, 40), (0, 0)]):  # of file and index, in seconds
        for unit in range(10**number, 4 * 10**number):  # more than before, whose file is replaced
            warehouse.commit(GISTS, unit_of(GISTS, unit), [gist(0)])
        compact(warehouse.folder, least=1)
        written = {*folder.glob("gists/*"), *folder.glob("index.*")} - {*files}
        for file, age in zip(sorted(written), ages, strict=True):
            os.utime(file, (time.time() - age,) * 2)
        files += sorted(written)
    collect(warehouse.folder, older_than=50)
    assert files[2].exists() and files[2].parent.name == "gists"


def test_a_compaction_that_stood_still_commits_nothing_that_was_collected(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has written its files when its lease is taken over and they are collected."""
    commit_some(warehouse, random.Random(1), range(20))
    expected = stored(warehouse.folder)
    write = upkeep._write

    def late(*args: Any) -> Iterator[Any]:
        yield from write(*args)
        for file in warehouse.folder.glob("*.lease"):
            file.write_text("{}")
        collect(warehouse.folder, older_than=0)

    monkeypatch.setattr(upkeep, "_write", late)
    assert compact(warehouse.folder, least=1) is None
    assert not index_of(warehouse).path
    agrees(warehouse.folder, expected)


def test_a_late_commit_of_a_collected_shard_is_refused(warehouse: Warehouse) -> None:
    late = Shards(warehouse.folder)
    assert late.recorded(GISTS.id, unit_of(GISTS, 1).unit) is None
    warehouse.commit(GISTS, unit_of(GISTS, 1), [gist(0, "First.")])
    compact(warehouse.folder, least=1)
    collect(warehouse.folder, older_than=0)
    assert not late.commit(Gist, GISTS, unit_of(GISTS, 1), [gist(0, "Late.")])
    assert late.load(Gist, GISTS.id, unit_of(GISTS, 1).unit) == (gist(0, "First."),)
    assert stored(warehouse.folder) == {}


def test_damaged_shards_stay_and_are_named(warehouse: Warehouse) -> None:
    commit_some(warehouse, random.Random(1), range(20))
    damaged: list[Any] = []
    for number, damage in enumerate((half, shortened, garbled), 900):
        rows = [gist(i, "x" * 999) for i in range(40)]
        damaged.append(warehouse.commit(GISTS, unit_of(GISTS, number), rows))
        damage(damaged[-1])
    compact(warehouse.folder, least=1)
    collect(warehouse.folder, older_than=0)
    assert {*(warehouse.folder / "tables").rglob("*.parquet")} == {*damaged}
    with pytest.raises(AccountingError, match=f"{damaged[0].name}|{damaged[1].name}"):
        Shards(warehouse.folder).committed([GISTS])


shortened = changed(lambda rows: rows.slice(1))


@pytest.mark.parametrize(
    "damage",
    [half, *(pytest.param(damage, marks=[pytest.mark.slow, pytest.mark.sampled])
             for damage in (garbled, Path.unlink, shortened))],
)  # fmt: skip
def test_a_damaged_compacted_file_is_named(warehouse: Warehouse, damage: Damage) -> None:
    """By a run, which has read the footer, and by the compaction that reads the rows. So is a
    damaged index."""
    commit_some(warehouse, random.Random(1), range(20))
    compact(warehouse.folder, least=1)
    (file,) = (warehouse.folder / "compacted" / "gists").iterdir()
    damage(file)
    commit_some(warehouse, random.Random(2), range(30, 80))
    checks: list[Callable[[], object]] = [lambda: compact(warehouse.folder, least=1)]
    shards = Shards(warehouse.folder)
    if damage is garbled:
        units = shards.units("gists", GISTS.id).items()
        checks.append(lambda: [shards.load(Gist, GISTS.id, unit, n) for unit, n in units])
    else:
        checks.append(lambda: shards.committed([GISTS]))
    for check in checks:
        with pytest.raises(DamagedError, match="put the file back") as caught:
            check()
        assert caught.value.file == str(file)
    lines: list[str] = []
    compact_if_worth_it(UPath(warehouse.folder), lines.append, least=1)
    done = gistmill("gc", f"warehouse={warehouse.folder}")
    assert done.returncode == 1
    starts = [line.partition(f"{file}: ")[0] for line in (*lines, *done.stderr.splitlines())]
    assert starts == ["not compacted: ", "gistmill: "]
    (index,) = warehouse.folder.glob("compacted/index.*")
    index.write_bytes(b"PAR1")
    with pytest.raises(DamagedError, match="put the file back") as caught:
        Shards(warehouse.folder).units("gists", GISTS.id)
    assert caught.value.file == str(index)


def test_a_read_that_a_store_refuses_is_repeated(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By an error without a number, such as s3fs raises."""
    unit = unit_of(GISTS, 900)
    warehouse.commit(GISTS, unit, [gist(0)])
    compact(warehouse.folder, least=1)
    shards, kind, read = Shards(warehouse.folder), type(warehouse.folder), UPath.read_bytes
    assert shards.load(Gist, GISTS.id, unit.unit) == (gist(0),)
    is_refused = [False, True, True]

    def refused(path: UPath, *mode: str) -> Any:
        raise OSError("Bad Gateway")

    monkeypatch.setattr(kind, "open", refused)
    monkeypatch.setattr(kind, "read_bytes", lambda p: refused(p) if is_refused.pop() else read(p))
    assert shards.load(Gist, GISTS.id, unit.unit) == (gist(0),) and not is_refused


@pytest.mark.slow
def test_readers_beside_writer_compaction_and_collection(warehouse: Warehouse) -> None:
    """Counts never fall and no reader fails: replaced files are kept while a reader is at work."""
    opened_at: dict[int, float] = {}  # by reader
    is_over = threading.Event()

    def reader(number: int) -> None:
        before = 0
        while not is_over.is_set():
            opened_at[number] = time.time()
            with connect(warehouse.folder) as connection:
                statement = "select count(*), count(distinct unit || page_index) from raw_gists"
                ((rows, distinct),) = connection.execute(statement).fetchall()
            assert rows == distinct >= before
            assert 2 * len(Shards(warehouse.folder).units("gists", GISTS.id)) >= rows
            before = rows

    with ThreadPoolExecutor() as pool:
        readers = [pool.submit(reader, number) for number in range(3)]
        try:
            for number in range(120):
                warehouse.commit(GISTS, unit_of(GISTS, number), [gist(0), gist(1)])
                if number % 10 == 9:
                    compact(warehouse.folder, least=1)
                    oldest = min([*opened_at.values()], default=time.time())
                    collect(warehouse.folder, older_than=time.time() - oldest + 0.05)
        finally:
            is_over.set()
        for ended in readers:
            ended.result()
    assert len(Shards(warehouse.folder).units("gists", GISTS.id)) == 120
    collect(warehouse.folder, older_than=0)
    assert stored(warehouse.folder) == {}


def test_a_run_is_compacted_while_it_works(warehouse: Warehouse) -> None:
    """Shards that are committed meanwhile, until the run ends, which waits for a compaction."""
    with compact_periodically(UPath(warehouse.folder), seconds=0.01, least=1):
        for number in range(40):
            warehouse.commit(GISTS, unit_of(GISTS, number), [gist(0), gist(1)])
        until(lambda: len(index_of(warehouse).units("gists", GISTS.id)) == 40)
    agrees(warehouse.folder, stored(warehouse.folder))
    commit_some(warehouse, random.Random(1), range(100, 120))
    at_the_end = index_of(warehouse).path
    time.sleep(0.1)  # ten times the pause
    assert index_of(warehouse).path == at_the_end, "nothing is compacted after it"


def index_of(warehouse: Warehouse) -> Index:
    return newest_index(UPath(warehouse.folder) / "compacted")


@pytest.mark.slow
def test_the_same_rows_in_an_object_store_and_none_of_a_removed_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with s3_server() as environment:
        for key, value in environment.items():
            monkeypatch.setenv(key, value)
        warehouse = Warehouse(cast(Path, UPath(f"s3://{BUCKET}/w")))
        kept, gone = (document_unit(GISTS, name) for name in ("kept", "gone"))
        warehouse.plan("gone", (GISTS, [kept, gone]))
        warehouse.plan("night", (GISTS, [kept]))
        commit_some(warehouse, random.Random(5), range(15))
        expected = stored(warehouse.folder)
        agrees(warehouse.folder, expected)
        done = compact(warehouse.folder, least=1)
        assert done is not None and done.shards == len(names(environment, "w/tables/"))
        collect(warehouse.folder, older_than=0)
        assert names(environment, "w/tables/") == []
        agrees(warehouse.folder, expected)
        for unit in (kept, gone):
            warehouse.commit(GISTS, unit, [gist(0, "Late.", unit.document_id)])
        assert remove_run(UPath(warehouse.folder), "gone") == 2
        assert compact(warehouse.folder, least=1) is not None
        collect(warehouse.folder, older_than=0)
        assert names(environment, "w/tables/") == names(environment, "w/removed/") == []
        units = Shards(warehouse.folder).units("gists", GISTS.id)
        assert kept.unit in units and gone.unit not in units
        assert len([name for name in names(environment, "w/compacted/") if "index" in name]) == 1
        assert not [name for name in names(environment, "w/") if name.endswith(".lease")]
