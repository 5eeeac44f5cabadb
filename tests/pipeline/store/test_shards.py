"""Shards: committed once and whole, never half, and noticed when changed afterwards."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq

from pipeline.store import Shards
from stages.tables.answers import Answer
from stages.tables.pages import Gist
from tests.support.runs.warehouse import Warehouse, answer, chunk, document_unit, gist, step

GISTS = step("gists")
ANSWERS = step("answers", "full_text")
UNIT = document_unit(GISTS, "d1")
CHUNK = chunk(ANSWERS, "d1", "q1", "q2")


def files(folder: Path) -> list[str]:
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def test_a_shard_is_named_by_table_step_and_unit(warehouse: Warehouse) -> None:
    """Also an empty one, of a unit without rows."""
    empty = document_unit(GISTS, "d2")
    for unit, rows in ((UNIT, (gist(0), gist(1))), (empty, ())):
        warehouse.commit(GISTS, unit, rows)
        assert warehouse.shards.load(Gist, GISTS.id, unit.unit) == rows
    units = {UNIT.unit: 1, empty.unit: 1}
    names = sorted(f"tables/gists/{GISTS.id}/{unit}.1.parquet" for unit in units)
    assert files(warehouse.folder) == names
    assert warehouse.shards.units("gists", GISTS.id) == units
    assert warehouse.shards.committed([GISTS]).units == {GISTS.id: units}


def test_every_row_says_where_it_comes_from(warehouse: Warehouse) -> None:
    path = warehouse.commit(ANSWERS, CHUNK, [answer("q1"), answer("q2")])
    columns = ["input_sha", "method", "corpus", "step_id", "unit", "repeat"]
    assert [tuple(row.values()) for row in pq.read_table(path, columns=columns).to_pylist()] == [
        (f"input-{question}", "full_text", "tests", ANSWERS.id, CHUNK.unit, 0)
        for question in ("q1", "q2")
    ]


def test_a_retry_writes_the_next_attempt_and_the_highest_counts(warehouse: Warehouse) -> None:
    for attempt in (10, 9):
        again = replace(UNIT, attempt=attempt)
        warehouse.commit(GISTS, again, [gist(0, f"Attempt {attempt}.")])
    assert warehouse.shards.units("gists", GISTS.id) == {UNIT.unit: 10}
    assert warehouse.shards.load(Gist, GISTS.id, UNIT.unit, 9) == (gist(0, "Attempt 9."),)


def test_what_is_committed_is_known_by_input(warehouse: Warehouse) -> None:
    other = chunk(ANSWERS, "d1", "q2", "q3")
    for unit in (CHUNK, other):
        warehouse.commit(ANSWERS, unit, [answer(q) for q in unit.inputs])
    committed = warehouse.shards.committed([GISTS, ANSWERS])
    assert committed.units == {GISTS.id: {}, ANSWERS.id: {CHUNK.unit: 1, other.unit: 1}}
    units = [CHUNK.unit, min(CHUNK.unit, other.unit), other.unit]
    shas = ("input-q1", "input-q2", "input-q3")
    assert committed.inputs == {ANSWERS.id: dict(zip(shas, units, strict=True))}


def test_of_two_at_once_one_commits_each_unit(tmp_path: Path) -> None:
    units = [chunk(ANSWERS, "d1", f"q{number}") for number in range(40)]

    def race(who: str) -> list[bool]:
        shards = Shards(tmp_path)
        return [shards.commit(Answer, ANSWERS, unit, [answer(reader=who)]) for unit in units]

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(race, "ab")
    assert first == [not is_won for is_won in second]
    assert len(files(tmp_path)) == len(units)
    for unit, is_won in zip(units, first, strict=True):
        (row,) = Shards(tmp_path).load(Answer, ANSWERS.id, unit.unit)
        assert row.reader == ("a" if is_won else "b")
