"""Compaction, collection and removal of a run in a warehouse on an S3 server, without Ray."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from upath import UPath

from pipeline.store import Shards, connect
from pipeline.store.upkeep import Removed, collect, compact, remove_run
from tests.pipeline.store.test_compaction import GISTS, commit_some
from tests.support.clusters.s3_server import BUCKET, names, s3_server
from tests.support.runs.warehouse import Warehouse, document_unit, gist

pytestmark = pytest.mark.slow


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    with s3_server() as environment:
        for key, value in environment.items():
            monkeypatch.setenv(key, value)
        yield environment


def test_the_same_rows_before_and_after_and_none_of_a_removed_run(
    environment: dict[str, str],
) -> None:
    warehouse = Warehouse(cast(Path, UPath(f"s3://{BUCKET}/w")))
    kept, gone = (document_unit(GISTS, name) for name in ("kept", "gone"))
    warehouse.plan("gone", (GISTS, [kept, gone]))
    warehouse.plan("night", (GISTS, [kept]))
    commit_some(warehouse, random.Random(5), range(15))
    before = contents()
    done = compact(warehouse.folder, least=1)
    assert done is not None and done.shards == len(names(environment, "w/tables/"))
    collect(warehouse.folder, older_than=0)
    assert names(environment, "w/tables/") == []
    assert contents() == before
    for unit in (kept, gone):
        warehouse.commit(GISTS, unit, [gist(0, "Late.", unit.document_id)])
    assert remove_run(UPath(warehouse.folder), "gone") == Removed(units=2, kept_units=1, labels=0)
    assert compact(warehouse.folder, least=1) is not None
    collect(warehouse.folder, older_than=0)
    assert names(environment, "w/tables/") == names(environment, "w/removed/") == []
    units = Shards(warehouse.folder).units("gists", GISTS.id)
    assert kept.unit in units and gone.unit not in units
    assert len([name for name in names(environment, "w/compacted/") if "index" in name]) == 1
    assert not [name for name in names(environment, "w/") if name.endswith(".lease")]


def contents() -> dict[str, list[object]]:
    """The rows that the views show."""
    queries = {table: f"from raw_{table}" for table in ("gists", "answers", "calls", "shards")}
    queries["footers"] = """select distinct decode(key), decode(value) from footers
    where decode(key) like 'gistmill.%'"""
    with connect(f"s3://{BUCKET}/w") as connection:
        return {
            name: sorted(connection.execute(query).fetchall(), key=repr)
            for name, query in queries.items()
        }
