"""Views of a connection are made when a statement first names them."""

from collections.abc import Iterator

import duckdb
import pytest

from pipeline.core.errors import UsageError
from pipeline.store.sql.connection import Connection, View, query


@pytest.fixture
def connection() -> Iterator[Connection]:
    with Connection() as opened:
        opened.add(View("create view doubled as select 2 * number as number from numbers"))
        opened.add(View("create view numbers as select unnest([1, 2]) as number"))
        yield opened


def made(connection: Connection) -> set[str]:
    statement = "select view_name from duckdb_views() where not internal"
    return {name for (name,) in connection.raw.execute(statement).fetchall()}


def test_a_view_is_made_after_those_that_it_reads(connection: Connection) -> None:
    assert connection.execute("from numbers").fetchall() == [(1,), (2,)]
    assert made(connection) == {"numbers"}
    assert connection.execute("from DOUBLED").fetchall() == [(2,), (4,)]


def test_what_lists_or_relates_views_has_all(connection: Connection) -> None:
    assert len(connection.execute("show tables").fetchall()) == 2


def test_a_relation_may_read_any_view_later(connection: Connection) -> None:
    numbers = connection.sql("from numbers")
    assert numbers.filter("number in (from doubled)").fetchall() == [(2,)]


def test_names_in_texts_and_suggestions(connection: Connection) -> None:
    assert connection.execute("from query_table('num' || 'bers')").fetchall() == [(1,), (2,)]
    with pytest.raises(UsageError, match='Did you mean "doubled"'):
        query(connection, "from doubledd")


def test_a_result_that_is_not_fetched_hinders_no_view(connection: Connection) -> None:
    connection.execute("from numbers").fetchone()
    assert connection.execute("from doubled").fetchone() == (2,)


def test_common_table_expressions_may_have_the_names_of_views(connection: Connection) -> None:
    """`odd` reads no view `even`, which reads `odd`."""
    odd = "with even as (select 2 as number) select n.number from numbers n anti join even e"
    connection.add(View(f"create view odd as {odd} on n.number = e.number"))
    connection.add(View("create view even as select number + 1 as number from odd"))
    assert connection.execute("from odd").fetchall() == [(1,)]
    assert connection.execute("from even").fetchall() == [(2,)]


def test_wrong_sql_of_a_table_is_named_where_it_is_read(connection: Connection) -> None:
    parts = [
        ("a.sql: section 'right'", "from numbers"),
        ("b.sql: section 'w'", "select x from numbers"),
    ]
    union = " union all ".join(f"({part})" for _, part in parts)
    connection.add(View(f"create view wrong as {union}", parts))
    assert connection.execute("from numbers").fetchone() == (1,)
    for _ in range(2):
        with pytest.raises(UsageError, match=r"^b\.sql: section 'w': Binder Error.*; correct it$"):
            connection.execute("from wrong")
    with pytest.raises(UsageError, match=r"^b\.sql"):
        connection.execute("show tables")


def test_an_error_of_a_statement_stays_duckdbs(connection: Connection) -> None:
    with pytest.raises(duckdb.BinderException):
        connection.execute("select x from numbers")
