"""Damaged and foreign shards: left out by what reads, named once; the rest is there."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from upath import UPath

from pipeline.asking.replies import SharedReplies
from pipeline.core.calls import Call, with_sent
from pipeline.core.errors import CommandError, DamagedError, LeftOutWarning, UsageError
from pipeline.core.rows import RECORDS
from pipeline.store import Shards, connect
from pipeline.store.sql.connection import query
from tests.support.clusters.s3_server import BUCKET, client, s3_server
from tests.support.command import gistmill
from tests.support.runs.finished_run import FinishedRun

pytestmark = pytest.mark.sampled

Damage = Callable[[Path], None]
TABLES = ("documents", "questions", "pages", "gists", "lookups", "answers", "ratings", "scores")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    return FinishedRun(tmp_path_factory.mktemp("made"))


def half(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])


def filled(content: bytes) -> Damage:
    def damage(file: Path) -> None:
        file.write_bytes(content)

    return damage


def changed(change: Callable[[Any], Any]) -> Damage:
    """The same file with other rows or columns."""

    def damage(file: Path) -> None:
        pq.write_table(change(pq.read_table(file)), file)

    return damage


def footer_garbled(file: Path) -> None:
    content = bytearray(file.read_bytes())
    length = int.from_bytes(content[-8:-4], "little")
    content[-8 - length : -8] = b"\xff" * length
    file.write_bytes(content)


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
    return {
        table: query(connection, f"select count(*) as n from {table}")[0]["n"]
        for table in (*TABLES, "calls")
    }


@pytest.fixture(scope="module")
def num_rows(made: FinishedRun) -> dict[str, int]:
    """Of every table of the undamaged run."""
    with connect(made.warehouse) as connection:
        assert query(connection, "from left_out") == []
        return rows_by_table(connection)


class Check:
    """Damages a copy of the warehouse and reads it."""

    def __init__(self, made: FinishedRun, folder: Path, num_rows: dict[str, int]) -> None:
        self.made, self.num_rows = made, num_rows
        self.warehouse = made.copied(folder)

    def shard(self, table: str) -> Path:
        return self.warehouse / self.made.shard(table).relative_to(self.made.warehouse)

    def __call__(self, table: str, damage: Damage, why: str) -> None:
        file = self.shard(table)
        damage(file)
        with pytest.warns(LeftOutWarning) as caught, connect(self.warehouse) as connection:
            (row,) = query(connection, "from left_out")
            found = rows_by_table(connection)
            query(connection, "from units")  # reads footers, too
        assert [str(one.message) for one in caught] == [f"{row['file']}: {row['why']}"]
        assert row["file"] == str(file)
        assert why in row["why"]
        assert f"delete tables/*/{file.parent.name}/{file.name} and run the same" in row["why"]
        lost = pq.read_metadata(self.made.shard(table)).num_rows
        assert found == {**self.num_rows, table: self.num_rows[table] - lost}
        with pytest.raises(CommandError) as raised:
            Shards(self.warehouse).committed(self.made.small.steps)
        assert str(raised.value).startswith(f"{file}: ")


@pytest.fixture
def check(made: FinishedRun, tmp_path: Path, num_rows: dict[str, int]) -> Check:
    return Check(made, tmp_path, num_rows)


@pytest.mark.parametrize(
    ("table", "kind"),
    [*(("answers", kind) for kind in DAMAGES),
     *((table, "half") for table in (*TABLES, "calls") if table != "answers")],
)  # fmt: skip
def test_a_damaged_shard_is_left_out_and_named(check: Check, table: str, kind: str) -> None:
    """By readers; a run is refused."""
    check(table, *DAMAGES[kind])


def garbled(file: Any) -> None:
    """Between head and footer: footers do not tell, the query that reads the rows does."""
    content = file.read_bytes()
    file.write_bytes(content[:4] + b"\xff" * 196 + content[200:])


@pytest.mark.slow
@pytest.mark.parametrize("damage", [half, filled(b""), Path.unlink, garbled])
def test_a_shard_that_is_damaged_after_connecting(check: Check, damage: Damage) -> None:
    """One line names it; what does not read it goes on."""
    with connect(check.warehouse) as connection:
        damage(file := check.shard("answers"))
        with pytest.raises(DamagedError) as caught:
            query(connection, "select answer from answers")
        assert caught.value.file == str(file)
        assert "\n" not in str(caught.value)
        assert len(query(connection, "from gists")) == check.num_rows["gists"]
        with pytest.raises(UsageError, match="sql: Conversion Error"):
            query(connection, "select 'a'::int from questions")


def test_rows_of_other_values_are_named_by_a_run(check: Check) -> None:
    """A null where the record has none: of no row that gistmill wrote."""
    file = check.shard("gists")
    with_column("num_words", lambda t: pa.nulls(t.num_rows, pa.int64()))(file)
    step = check.made.small.step("gists")
    with pytest.raises(DamagedError, match="row 0, num_words: Input should be a valid integer"):
        Shards(check.warehouse).load(RECORDS["gists"], step.id, file.name.split(".")[0])


def test_of_a_table_whose_plugin_is_not_loaded(check: Check) -> None:
    file = check.shard("scores")
    folder = check.warehouse / "tables" / "remarks"
    (check.warehouse / "tables" / "scores").rename(folder)
    other = folder / file.parent.name / file.name
    other.write_bytes(b"PAR1")
    with pytest.warns(LeftOutWarning) as caught, connect(check.warehouse) as connection:
        assert len(query(connection, "from all_remarks")) > 0
    assert [str(one.message).partition(": ")[0] for one in caught] == [str(other)]


def test_a_damaged_shared_reply_is_asked_again(made: FinishedRun, tmp_path: Path) -> None:
    gists = made.small.step("gists")
    one = Shards(made.warehouse).load(Call, gists.id, made.shard("calls").name.split(".")[0])[0]
    shared = SharedReplies(UPath(tmp_path))
    for content in (b"", b"{", b"[]", b"\xff", b'{"document_id": 3}'):
        (tmp_path / "sha.json").write_bytes(content)
        assert asyncio.run(shared.find("sha")) is None
        assert asyncio.run(shared.keep("sha", one)) == one  # replaces the damaged one
        assert asyncio.run(shared.find("sha")) == with_sent(one, None)


@pytest.mark.slow
def test_on_an_object_store(made: FinishedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same, from one request per shard."""
    bad = {"answers": b"", "gists": b"PAR1 and no more", "ratings": b"PAR1" * 40_000}
    names = {str(made.shard(table).relative_to(made.warehouse)): bad[table] for table in bad}
    with s3_server() as environment:
        for key, value in environment.items():
            monkeypatch.setenv(key, value)
        for file in (file for file in made.warehouse.rglob("*") if file.is_file()):
            name = str(file.relative_to(made.warehouse))
            body = names.get(name, file.read_bytes())
            client(environment).put_object(Bucket=BUCKET, Key=f"w/{name}", Body=body)
        with pytest.warns(LeftOutWarning), connect(f"s3://{BUCKET}/w") as connection:
            found = query(connection, "from left_out")
            assert {row["file"] for row in found} == {f"s3://{BUCKET}/w/{name}" for name in names}
            assert [row["question_id"] for row in query(connection, "from answers")] == ["q3"]
        done = gistmill("status", f"warehouse=s3://{BUCKET}/w")
        assert (done.returncode, len(done.stderr.splitlines())) == (0, 3)
