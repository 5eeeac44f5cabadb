"""A user's SQL reads the views of the warehouse; it opens no other file and writes none."""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from jobs.report.report import create_chosen_table
from pipeline.core.errors import UsageError
from pipeline.store import connect
from pipeline.store.sql.connection import expression, query
from tests.support.command import gistmill, refused, succeed
from tests.support.runs.warehouse import Warehouse, answer, chunk, question, step

SECRET = "the-password-of-another"
QUESTIONS, ANSWERS = step("questions"), step("answers", "full_text")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A warehouse of one question beside files that are none of its own."""
    warehouse = Warehouse(tmp_path / "w's [1]")
    asked, answered = chunk(QUESTIONS, "d1", "q1"), chunk(ANSWERS, "d1", "q1")
    warehouse.commit(QUESTIONS, asked, [question()])
    warehouse.commit(ANSWERS, answered, [answer()])
    warehouse.plan("r", (QUESTIONS, [asked]), (ANSWERS, [answered]))
    (tmp_path / "secret.txt").write_text(SECRET)
    (tmp_path / "secret.csv").write_text(f"a\n{SECRET}\n")
    return tmp_path


def opened(folder: Path, **options: Any) -> Any:
    return connect(folder / "w's [1]", **options)


def options(key: str, value: str) -> Any:
    return SimpleNamespace(**{"where": None, "by": None, key: value})


WRITES = [
    "copy answers to '{0}/new.csv'",
    "copy (select 1) to '{0}/new.csv'",
    "export database '{0}/new'",
    "attach '{0}/new.db'",
    "explain analyze copy answers to '{0}/new.csv'",
    "create secret (type s3, key_id 'a', secret 'b')",
    "install httpfs",
    "load httpfs",
    "set enable_external_access = true",
    "reset lock_configuration",
    "call enable_profiling(save_location = '{0}/new.txt')",
    "with x as (copy (select 1) to '{0}/new.parquet' (use_tmp_file false)) from x",
    "with x as (copy (select 1) to '{0}/new.csv'), y as (from x) select count(*) from y",
    "copy (select 1 as a) to '{1}' (format parquet, use_tmp_file false)",
    "with x as (copy (select 1 as a) to '{1}' (format parquet, use_tmp_file false)) from x",
    "with x as (copy (select 1 as a) to 'read://{1}' (format parquet, use_tmp_file false)) from x",
]
READS = [
    "from read_text('{0}/secret.txt')",
    "from read_blob('{0}/secret.txt')",
    "from read_csv('{0}/secret.csv')",
    "from read_csv('/dev/stdin')",
    "from '{0}/secret.csv'",
    'from "{0}/secret.csv"',
    "select content from read_text('/etc/passwd')",
    "from glob('{0}/*')",
    "from sniff_csv('{0}/secret.csv')",
    "from parquet_metadata('{0}/secret.csv')",
    "select (select content from read_text('{0}/secret.txt'))",
    "with a as (from read_text('{0}/secret.txt')) from a",
    "from answers order by (select content from read_text('{0}/secret.txt'))",
    "from answers where answer in (select file from glob('{0}/*'))",
    "from query('from read_text(''{0}/secret.txt'')')",
    "from query_table('{0}/secret.csv')",
    "select getenv('HOME')",
    "from enable_profiling(format = 'json', save_location = '{0}/new.json')",
    "from system.main.enable_profiling(format = 'json', save_location = '{0}/new.json')",
    "from enable_logging(storage = 'file', storage_path = '{0}/new')",
    "from arrow_scan(0, 0, 0)",
    "from json_execute_serialized_sql(json_serialize_sql('from read_text(''{0}/secret.txt'')'))",
    "from import_database('{0}')",
]


@pytest.mark.parametrize("statements", [WRITES, READS], ids=["writes", "reads"])
def test_sql_reads_views_and_nothing_else(folder: Path, statements: list[str]) -> None:
    """By `gistmill sql`, on a connection of Python, and inside an expression of `where=`."""
    shard, *_ = (folder / "w's [1]").glob("tables/answers/*/*")
    quoted = str(shard).replace("'", "''")
    with unchanged(folder), opened(folder) as connection:
        for statement in (text.format(folder, quoted) for text in statements):
            with pytest.raises(UsageError, match=r"^sql: ") as refused_query:
                query(connection, statement)
            with pytest.raises(duckdb.Error) as refused_statement:
                connection.execute(statement)
            assert SECRET not in f"{refused_query.value} {refused_statement.value}"
            for value in (f"({statement}) is null", f"1); {statement}; --", statement):
                for key in ("where", "by"):
                    with pytest.raises(UsageError) as refused_words:
                        create_chosen_table(connection, options(key, value))
                    assert SECRET not in str(refused_words.value)


def test_what_a_statement_changes_goes_with_the_connection(folder: Path) -> None:
    """DuckDB 2.0 refuses the profiles, 1.5 prints them or cannot write them."""
    with unchanged(folder):
        for statement in (
            "pragma enable_profiling", "create table mine as from answers", "begin",
            f"call enable_profiling(save_location = 'read://{folder}/new.txt')",
            "set variable a = 1; checkpoint",
        ):  # fmt: skip
            with opened(folder) as connection, suppress(duckdb.Error):
                connection.execute(statement).fetchall()
                connection.execute("select count(*) from answers").fetchall()
            with opened(folder) as connection:
                assert query(connection, "select count(*) as n from answers") == [{"n": 1}]


@contextmanager
def unchanged(folder: Path) -> Iterator[None]:
    def contents() -> dict[Path, bytes]:
        return {path: path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}

    before = contents()
    yield
    assert contents() == before


def test_rows_time_and_memory_have_limits(folder: Path) -> None:
    warehouse, endless = f"warehouse={folder}/w's [1]", "from range(1e18::bigint)"
    done = gistmill("sql", endless, warehouse, "rows=2", "--json")
    assert json.loads(done.stdout) == [{"range": 0}, {"range": 1}]
    assert done.stderr == "gistmill: only the first 2 rows; add rows=N for more\n"
    assert gistmill("sql", "from range(2)", warehouse, "rows=2").stderr == ""
    statement = f"select max(hash(range)) {endless}"
    line = "sql: stopped after 0.5 seconds; ask for less, or add seconds=N"
    assert refused("sql", statement, warehouse, "seconds=0.5") == line
    many = "select repeat('x', 999) || range as a from range(1e6::bigint) order by a desc"
    with opened(folder, unsafe=True) as connection:
        connection.execute("set memory_limit = '100MB'")
        with pytest.raises(UsageError, match=r"^sql: Out of Memory Error: "):
            query(connection, f"select max(a) from ({many} offset 9)")
    for statement in (f"copy answers to '{folder}/new.csv'", "set memory_limit = '9GB'"):
        line = refused("sql", statement, warehouse)
        assert line.startswith("sql: ")
        assert line.endswith("views alone; gistmill sql --unsafe lifts the locks)")


def test_what_only_reads_is_allowed(folder: Path) -> None:
    with opened(folder) as connection:
        for statement in (
            "from answers", "with a as (from answers) select answer from a",
            "select 'a; copy' -- ; copy", "select 1 from all_answers join footers on true limit 1",
            "pivot answers on reader in ('hand') using count(*) group by method",
        ):  # fmt: skip
            assert len(query(connection, statement)) == 1, statement
        for statement in ("values (1), (2)", "select unnest([1, 2])", "from unnest([1, 2])"):
            assert len(query(connection, statement)) == 2, statement
        for statement in ("describe answers", "summarize answers", "show tables"):
            assert query(connection, statement), statement


def test_unsafe_sql_writes_what_it_is_asked_for(folder: Path) -> None:
    target = folder / "answers.csv"
    statement = f"copy (select answer from answers) to '{target}' (header false)"
    succeed("sql", statement, f"warehouse={folder}/w's [1]", "--unsafe")
    assert target.read_text() == "A mill.\n"


def test_a_variable_of_this_process_is_a_table_if_it_is_registered(folder: Path) -> None:
    """As notebooks use it, beside variables of SQL, and tables in memory."""
    grades = pa.table({"question_id": ["q1"], "grade": [3]})
    with opened(folder, unsafe=True) as connection:
        assert connection.execute("select grade from grades").fetchall() == [(3,)]
    with opened(folder) as connection:
        with pytest.raises(duckdb.CatalogException):
            connection.execute("from grades")
        connection.register("mine", grades)
        connection.execute("create table kept as from answers join mine using (question_id)")
        connection.execute("set variable least = 2")
        query = "select grade from kept where grade > getvariable('least')"
        assert connection.execute(query).fetchall() == [(3,)]


def test_where_and_by_are_expressions(folder: Path) -> None:
    """Which may hold comments, brackets and views."""
    for text in ("question_id in (select question_id from answers)",
                 "question like '%;%' -- ends here", "(num_document_words > 1) and (true)",
                 "list_contains(\"references\", 'A mill.')"):  # fmt: skip
        assert expression("where", text) == text
    wrong = ("true) union (select 1, 2", "1, 2", "true order by 1", "true /*", "'", "count(*)",
             "no_such_column", "--")  # fmt: skip
    with opened(folder) as connection:
        for key, value in product(("where", "by"), wrong):
            with pytest.raises(UsageError):
                create_chosen_table(connection, options(key, value))
