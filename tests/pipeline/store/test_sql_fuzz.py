"""Ten thousand statements drawn from a grammar of DuckDB's SQL change no byte of a warehouse and
read no other file: with the check of `gistmill sql` and, without it, on a locked connection."""

import hashlib
import random
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pytest

from pipeline.core.errors import UsageError
from pipeline.store import connect
from pipeline.store.sql.sql_sandbox import only_select, rows_within
from tests.pipeline.store.test_sql_sandbox import SECRET, filled
from tests.support.runs.warehouse import Warehouse

SEEDS, CONNECTIONS, OF_A_CONNECTION = 5, 8, 250  # ten thousand statements
# Kinds of nodes of DuckDB's syntax trees, each of which a drawn statement that is allowed has.
KINDS = {
    "SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "BASE_TABLE", "SUBQUERY", "JOIN",
    "TABLE_FUNCTION", "EXPRESSION_LIST", "EMPTY", "SHOW_REF", "COLUMN_REF", "VALUE_CONSTANT",
    "FUNCTION", "WINDOW_AGGREGATE", "CASE_EXPR", "OPERATOR_CAST", "STAR", "LAMBDA",
    "COMPARE_EQUAL", "COMPARE_IN", "COMPARE_BETWEEN", "CONJUNCTION_AND", "POSITIONAL_REFERENCE",
    "LIMIT_MODIFIER", "ORDER_MODIFIER", "DISTINCT_MODIFIER",
}  # fmt: skip


# Templates by symbol; {symbol} is drawn in its place. The first few of each hold no other symbol.
GRAMMAR = {
    "statement": (
        "show tables", "{query}", "{query}", "{query}", "{query}", "{write}", "{other}",
        "{query}; {write}", "explain analyze {write}", "{query} -- {write}", "({query})",
    ),
    "write": (
        "delete from answers returning *", "update answers set problem = 'x' returning *",
        "copy ({query}) to {path} (format {format}{more})", "insert into {table} {query}",
        "copy {table} to {path} (format {format}{more})", "update {table} set problem = {value}",
        "insert into {table} {query} returning *", "delete from {table} where {value} is null",
        "merge into {table} t using ({query}) s on true when matched then delete",
    ),
    "format": ("parquet", "csv", "json"),
    "more": ("", ", use_tmp_file false", ", overwrite_or_ignore true", ", append true"),
    "table": ("answers", "raw_answers", "no_answers", "left_out_rows", "raw_steps_rows", "{path}"),
    "other": (
        "checkpoint", "begin", "rollback", "vacuum", "analyze", "install httpfs", "use memory",
        "create secret (type s3)", "create sequence s", "reset allowed_paths", "from m()",
        "set memory_limit = '1GB'", "set disabled_filesystems = ''", "pragma enable_profiling",
        "drop view answers", "execute p", "attach {path}", "detach {path}", "load {path}",
        "export database {path}", "import database {path}", "set temp_directory = {path}",
        "create table mine as {query}", "create view mine as {query}", "prepare p as {write}",
        "pragma log_query_path = {path}", "call enable_profiling(save_location = {path})",
        "copy answers from {path}", "copy from database memory to {path}",
        "comment on view answers is {path}", "create macro m() as table {query}",
        "alter table answers rename to {path}", "call checkpoint()",
    ),
    "query": (
        "from answers", "select 1", "from documents", "values (1)", "summarize answers",
        "select {value} from {source} where {value} = 1", "from {source}",
        "select distinct * from {source} order by 1 limit ({query})", "from ({query})",
        "select count(*) from {source} group by all having {value} between 1 and 2",
        "select sum(1) over (order by {value}) from {source} qualify true",
        "with x as {how} ({body}) from x", "({query}) union all by name ({query})",
        "with x as ({body}), y as (from x) select (select count(*) from y)",
        "with recursive x as (select 1 as n union all select n + 1 from x where n < 3) from x",
        "from (describe {query})", "pivot ({query}) on 1 using count(*)", "from ({body})",
        "({query}) except ({query})", "select * from answers where problem in ({query})",
        "select #1, [x + 1 for x in [1, 2]], list_transform([1], x -> x + {value}) from {source}",
    ),
    "body": ("select 1", "{query}", "{query}", "{query}", "{write}", "{write}", "{other}"),
    "how": ("", "materialized", "not materialized"),
    "source": (
        "answers", "questions q", "all_answers", "raw_documents", "range(3)", "unnest([1, 2])",
        "(values (1), (2)) v(a)", "duckdb_settings()", "duckdb_secrets()", "{path}", "({query}) x",
        "answers tablesample 10%", "{reader}({path})", "{reader}([{path}])", "query({path})",
        "answers a join ({query}) b on {value} = 1", "query('copy answers to ' || {path})",
        "query_table({path})", "answers, lateral ({query}) l", "query('{query}')",
        "enable_logging(storage_path = {path})",
    ),
    "reader": (
        "read_text", "read_blob", "read_csv", "read_json", "read_parquet", "parquet_scan", "glob",
        "parquet_metadata", "sniff_csv", "read_ndjson_objects", "read_duckdb", "parquet_schema",
    ),
    "value": (
        "1", "problem", "getenv('HOME')", "1::varchar", "count(*)", "array(from answers)",
        "current_setting('temp_directory')", "({query})", "case when true then {path} end",
        "exists ({query})", "(select content from read_text({path}))", "true and 1 = 1",
        "1 in (1, {value})", "parse_path({path})", "(with x as ({body}) select 1 from x)",
    ),
}  # fmt: skip
DEPTH, WITHOUT_SYMBOLS = 6, re.compile(r"[^{]*")


def expanded(draw: random.Random, symbol: str, paths: Sequence[str], depth: int = DEPTH) -> str:
    """A text of a symbol of the grammar. `paths`: of the files that it may name."""
    if symbol == "path":
        prefix = draw.choice(("", "", "read://", "file://", "READ://"))
        return "'" + (prefix + draw.choice(paths)).replace("'", "''") + "'"
    ways: Sequence[str] = GRAMMAR[symbol]
    if depth <= 0:
        ways = [way for way in ways if WITHOUT_SYMBOLS.fullmatch(way)]
    inner = partial(expanded, draw, paths=paths, depth=depth - 1)
    return re.sub(r"\{(\w+)\}", lambda found: inner(found[1]), draw.choice(ways))


def contents(folder: Path) -> dict[str, str]:
    """The hashes of all files."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A warehouse beside files that are none of its own, in the current folder."""
    filled(Warehouse(tmp_path / "w"))
    (tmp_path / "other.txt").write_text(SECRET)
    (tmp_path / "other.csv").write_text(f"a\n{SECRET}\n")
    (tmp_path / "other.json").write_text(f'{{"a": "{SECRET}"}}\n')
    duckdb.sql(f"copy (select '{SECRET}' as a) to '{tmp_path / 'other.parquet'}'")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def drawn(folder: Path, seed: int) -> Iterator[str]:
    shards = [str(path) for path in sorted((folder / "w").rglob("*.parquet"))]
    others = [str(folder / name) for name in ("other.txt", "other.csv", "other.json")]
    new = [str(folder / "new.parquet"), ".tmp/new.csv", "new", "memory://new", "/dev/stdout"]
    paths = [*shards, *others, str(folder / "other.parquet"), *new, str(folder / "*"), ""]
    draw = random.Random(seed)
    while True:
        yield expanded(draw, "statement", paths)


def read_by(execute: Callable[[str], Any], statement: str) -> str:
    """What a statement shows, its error among it."""
    try:
        return str(execute(statement))
    except (UsageError, duckdb.Error, RuntimeError) as error:
        return str(error)


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("is_checked", [True, False])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_statement_writes_or_reads_another_file(
    folder: Path, seed: int, is_checked: bool
) -> None:
    before, statements, kinds = contents(folder), drawn(folder, seed), set[str]()
    for _ in range(CONNECTIONS):
        with connect(folder / "w") as connection:

            def checked(statement: str, connection: Any = connection) -> Any:
                allowed = only_select(connection, statement)
                kinds.update(kinds_of(connection, allowed))
                return rows_within(connection, allowed, 100, 5)

            def unchecked(statement: str, connection: Any = connection) -> Any:
                done = connection.execute(statement)
                return done and done.fetchmany(100)

            for _ in range(OF_A_CONNECTION):
                statement = next(statements)
                shown = read_by(checked if is_checked else unchecked, statement)
                assert SECRET not in shown, statement
        assert contents(folder) == before
    assert not is_checked or kinds >= KINDS, KINDS - kinds


def kinds_of(connection: Any, statement: str) -> set[str]:
    serialized = "select json_serialize_sql(?::varchar)"
    ((tree,),) = connection.raw.execute(serialized, [statement]).fetchall()
    return {*re.findall(r'"type":\s*"(\w+)"', tree)}
