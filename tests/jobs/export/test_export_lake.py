"""`gistmill export lake`: tables of Delta Lake and Iceberg over compacted files, read by their own
packages, and compared with the views."""

import json
import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pipeline.files.lease import UPKEEP, lease
from pipeline.files.place import as_path
from tests.support.command import gistmill, refused, sql, succeed

TABLES = ("answers", "calls", "documents", "pages", "questions", "scores")


def read_delta(folder: Path, table: str) -> Any:
    from deltalake import DeltaTable

    return DeltaTable(folder / table).to_pyarrow_table()


def read_iceberg(folder: Path, table: str) -> Any:
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("gistmill", uri=f"sqlite:///{folder / 'catalog.db'}")
    found = catalog.load_table(f"gistmill.{table}").scan().to_arrow()
    catalog.close()
    return found


READ: Mapping[str, Callable[[Path, str], Any]] = {"delta": read_delta, "iceberg": read_iceberg}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse of two runs, which share the units of one document."""
    warehouse = tmp_path_factory.mktemp("lake") / "warehouse"
    own = ["run", "corpus=demo", "rater=none", f"warehouse={warehouse}"]
    succeed(*own, "run=one", "methods=bm25,constant", "limit=1")
    succeed(*own, "run=two", "methods=bm25", "limit=2")
    return warehouse


@pytest.fixture
def warehouse(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "warehouse"))


def exported(form: str, warehouse: Path, *more: str) -> tuple[Path, list[dict[str, Any]]]:
    folder = warehouse.parent / f"lake of {form}"
    words = [f"format={form}", f"warehouse={warehouse}", f"to={folder}", *more, "--json"]
    tables: list[dict[str, Any]] = json.loads(succeed("export", "lake", *words))["tables"]
    return folder, tables


def shown(warehouse: Path, table: str, run: str | None = None) -> tuple[int, int]:
    """The number of rows that the views show of runs, each once, and the sum of their lengths."""
    which = "run is not null" if run is None else f"run = '{run}'"
    query = f"""select count(*) as rows, sum(length(step_id || unit || document_id))::int as total
        from (select distinct * exclude (run) from all_{table} where {which})"""
    (row,) = sql(warehouse, query)
    return row["rows"], row["total"]


def counted(rows: Any) -> tuple[int, int]:
    names = [rows[name] for name in ("step_id", "unit", "document_id")]
    return rows.num_rows, sum(pc.sum(pc.utf8_length(name)).as_py() or 0 for name in names)


@pytest.mark.interchange
@pytest.mark.parametrize("form", READ)
def test_the_rows_are_those_of_the_views_and_none_is_copied(warehouse: Path, form: str) -> None:
    folder, tables = exported(form, warehouse)
    assert {table["table"] for table in tables} >= {*TABLES}
    for table in tables:
        name = table["table"]
        rows = READ[form](folder, name)
        assert counted(rows) == shown(warehouse, name), name
        assert table["rows"] == rows.num_rows and table["written_anew"] == 0
        assert Path(table["open"].removeprefix("file://")).exists()
    ours = {file.stat().st_ino for file in (warehouse / "compacted").rglob("*/*.parquet")}
    theirs = {file.stat().st_ino for file in folder.rglob("*.parquet")}
    assert theirs == ours, "the same files under other names"


@pytest.mark.interchange
@pytest.mark.parametrize("form", READ)
def test_rows_that_do_not_count_are_left_out(warehouse: Path, form: str) -> None:
    """Of a removed run, whose units lie in the same file, until `gc` deletes them."""
    succeed("gc", f"warehouse={warehouse}")
    before = shown(warehouse, "answers")
    succeed("rm", "run=two", "--yes", f"warehouse={warehouse}")
    folder, tables = exported(form, warehouse)
    (answers,) = [table for table in tables if table["table"] == "answers"]
    rows = READ[form](folder, "answers")
    assert counted(rows) == shown(warehouse, "answers") < before
    assert answers["written_anew"] == answers["rows"] == rows.num_rows
    assert {*rows["method"].to_pylist()} == {"bm25(top_k=3)", "constant"}


@pytest.mark.interchange
def test_the_rows_of_one_run(warehouse: Path) -> None:
    folder, tables = exported("delta", warehouse, "run=one", "tables=answers,scores")
    assert [table["table"] for table in tables] == ["answers", "scores"]
    for name in ("answers", "scores"):
        assert counted(read_delta(folder, name)) == shown(warehouse, name, "one")


@pytest.mark.interchange
def test_an_earlier_attempt_of_a_unit_does_not_count(warehouse: Path) -> None:
    """Its next attempt, written by hand, says something else."""
    shard = min((warehouse / "tables" / "answers").rglob("*.1.parquet"))
    rows = pq.read_table(shard)
    said = rows.schema.get_field_index("answer")
    again = rows.set_column(said, "answer", pa.array(["again"] * rows.num_rows))
    succeed("gc", f"warehouse={warehouse}")
    pq.write_table(
        again.replace_schema_metadata(rows.schema.metadata), shard.with_name(
            shard.name.replace(".1.", ".2."))
    )  # fmt: skip
    folder, _ = exported("delta", warehouse)
    found = read_delta(folder, "answers")
    assert counted(found) == shown(warehouse, "answers")
    assert found["answer"].to_pylist().count("again") == rows.num_rows


@pytest.mark.interchange
@pytest.mark.parametrize("form", READ)
def test_it_outlives_a_later_compaction(warehouse: Path, form: str) -> None:
    folder, _ = exported(form, warehouse)
    before = counted(READ[form](folder, "scores"))
    words = ["corpus=demo", "rater=none", "run=three", "methods=closed_book"]
    succeed("run", *words, f"warehouse={warehouse}")
    succeed("gc", "older_than=0", f"warehouse={warehouse}")
    succeed("gc", "older_than=0", f"warehouse={warehouse}")
    assert counted(READ[form](folder, "scores")) == before


@pytest.mark.interchange
def test_what_exists_is_kept(warehouse: Path) -> None:
    folder, _ = exported("delta", warehouse)
    words = ["export", "lake", f"warehouse={warehouse}", f"to={folder}"]
    assert refused(*words) == f"to={folder}: exists already; name another folder, or add --force"
    exported("delta", warehouse, "--force")
    (folder / ".gistmill-export").unlink()
    assert refused(*words, "--force") == (
        f"to={folder}: is no export of gistmill; name another folder"
    )
    assert read_delta(folder, "answers").num_rows > 0
    wrong = [*words[:3], f"to={folder}2", "tables=answer"]
    assert refused(*wrong).startswith("tables=answer: no such table in compacted files; there ")
    sharp = [*words[:3], f"to={folder}#", "format=iceberg"]
    assert "end an address of Iceberg" in refused(*sharp)
    assert not Path(f"{folder}2").exists() and not Path(f"{folder}#").exists(), "nothing is left"


@pytest.mark.slow
def test_mistakes_are_one_line(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["export", "lake", f"warehouse={made}", f"to={tmp_path / 'a'}"]
    assert refused(*words, "format=hudi") == (
        "format=hudi: no such format; there are delta, iceberg"
    )
    monkeypatch.setitem(sys.modules, "deltalake", None)
    monkeypatch.setitem(sys.modules, "pyiceberg.catalog.sql", None)
    assert refused(*words) == "format=delta: needs deltalake; pip install 'gistmill[lake]'"
    assert refused(*words, "format=iceberg") == (
        "format=iceberg: needs pyiceberg and SQLAlchemy; pip install 'gistmill[lake]'"
    )
    monkeypatch.setattr("jobs.export.export_lake.FORMATS", {"delta": lambda: lambda *_: {}})
    elsewhere = ["export", "lake", f"warehouse={tmp_path / 'none'}", f"to={tmp_path / 'a'}"]
    assert "no run there" in refused(*elsewhere)
    assert refused(*words[:3], "to=-") == "to=-: no folder on this machine; add to=FOLDER"
    assert "cannot be linked there" in refused(
        *elsewhere[:2], "warehouse=memory://lake", f"to={tmp_path / 'a'}"
    )


def made_nowhere(_: Path, tables: Sequence[tuple[str, Any, Any]]) -> dict[str, str]:
    """In place of a format, whose package the tests of every day do not have."""
    return {name: "" for name, _, _ in tables}


@pytest.mark.slow
def test_while_another_process_compacts(warehouse: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is compacted there yet; later on all but one run is."""
    monkeypatch.setattr("jobs.export.export_lake.FORMATS", {"delta": lambda: made_nowhere})
    folder, held = warehouse.parent / "lake", "another process compacts the warehouse; "
    words = ["export", "lake", f"warehouse={warehouse}", f"to={folder}", "--json"]
    with lease(as_path(warehouse), UPKEEP):
        done = gistmill(*words)
    assert done.returncode == 2 and not folder.exists()
    warned, refusal = done.stderr.splitlines()
    assert warned.startswith(held)
    assert refusal.endswith("no compacted file has a row of a run; gistmill gc compacts")
    succeed("gc", f"warehouse={warehouse}")
    before = shown(warehouse, "answers")[0]
    own = ["corpus=demo", "limit=1", "rater=none", "methods=closed_book", "run=three"]
    succeed("run", *own, f"warehouse={warehouse}")
    with lease(as_path(warehouse), UPKEEP):
        done = gistmill(*words)
    warned, loose = done.stderr.splitlines()
    assert warned.startswith(held)
    assert re.fullmatch(r"[1-9]\d* shards are not compacted, and not in what is exported", loose)
    tables = {table["table"]: table["rows"] for table in json.loads(done.stdout)["tables"]}
    assert tables["answers"] == before < shown(warehouse, "answers")[0]
