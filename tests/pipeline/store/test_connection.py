"""Views of a connection are made when a statement first names them."""

from collections.abc import Iterator

import duckdb
import pytest

from pipeline.core.errors import UsageError
from pipeline.store.sql.connection import Connection, query


@pytest.fixture
def connection() -> Iterator[Connection]:
    with Connection() as opened:
        opened.add("create view Doubled as select 2 * number as number from NUMBERS")
        opened.add("create view numbers as select unnest([1, 2]) as number")
        yield opened


def test_a_view_is_made_after_those_that_it_reads(connection: Connection) -> None:
    """Of a relation, which may name any view later, all are."""
    assert connection.execute("from numbers").fetchall() == [(1,), (2,)]
    made = connection.raw.execute("select view_name from duckdb_views() where not internal")
    assert made.fetchall() == [("numbers",)]
    assert connection.execute("from DOUBLED").fetchall() == [(2,), (4,)]
    connection.add("create view tripled as select 3 * number as number from numbers")
    assert connection.sql("from numbers").filter("3 in (from tripled)").fetchall() == [(1,), (2,)]


@pytest.mark.parametrize(
    "statement",
    ["show tables", "from pg_views where viewname in ('numbers', 'Doubled')",
     "from query_table('num' || 'bers')", "select n.number from range(1), numbers n",
     "select number from numbers anti join (select 3 as number) wrong using (number)"],
)  # fmt: skip
def test_views_may_be_listed_or_named_in_other_ways(connection: Connection, statement: str) -> None:
    assert len(connection.execute(statement).fetchall()) == 2


def test_queries_suggest_the_view_that_was_meant_and_number_columns_of_one_name(
    connection: Connection,
) -> None:
    for wrong, meant in (("from doubledd", '"Doubled"'), ("select nmber from numbers", '"number"')):
        with pytest.raises(UsageError, match=meant):
            query(connection, wrong)
    with pytest.raises(UsageError, match="empty query"):
        query(connection, " -- nothing")
    assert query(connection, "select 1 as a, 2 as b, 3 as a") == [{"a": 1, "b": 2, "a_1": 3}]


def test_common_table_expressions_may_have_the_names_of_views(connection: Connection) -> None:
    """`odd` reads no view `even`, which reads `odd`."""
    odd = "with even as (select 2 as number) select n.number from numbers n anti join even e"
    connection.add(f"create view odd as {odd} on n.number = e.number")
    connection.add("create view even as select number + 1 as number from odd")
    assert connection.execute("from odd").fetchall() == [(1,)]
    assert connection.execute("from even").fetchall() == [(2,)]


@pytest.mark.parametrize("statement", ["from wrong", "show tables", "pragma show_tables"])
def test_wrong_sql_of_a_table_is_named_where_it_is_read(
    connection: Connection, statement: str
) -> None:
    connection.add("create view wrong as select x from numbers", "a.sql: section 'w'")
    connection.execute("create temp table kept as from doubled")  # of a wrong one it does not hear
    for _ in range(2):
        with pytest.raises(UsageError, match=r"^a\.sql: section 'w': Binder Error.*; correct it$"):
            connection.execute(statement)
    with pytest.raises(duckdb.BinderException):
        connection.execute("select x from numbers")


def test_a_text_of_several_statements_is_executed_once(connection: Connection) -> None:
    connection.execute("create temp table kept (number int)")
    with pytest.raises(duckdb.CatalogException, match="typo"):
        connection.execute("insert into kept values (2); from typo")
    assert connection.execute("from kept").fetchall() == [(2,)]


def test_views_outlive_a_transaction(connection: Connection) -> None:
    for _ in range(2):
        connection.execute("begin")
        assert connection.execute("from doubled").fetchone() == (2,)
        connection.execute("rollback")
        assert connection.execute("from doubled").fetchone() == (2,)
