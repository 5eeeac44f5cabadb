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


@pytest.mark.parametrize(
    "statement",
    ["create temp table t as from doubled", "insert into kept from doubled",
     "set variable first = (select min(number) from doubled)"],
)  # fmt: skip
def test_a_statement_makes_the_views_that_it_names(connection: Connection, statement: str) -> None:
    """Of another one, which is wrong, it does not hear."""
    connection.raw.execute("create table kept (number bigint)")
    wrong = View("create view wrong as select x from numbers", [("w.sql", "select x from numbers")])
    connection.add(wrong)
    connection.execute(statement)
    with pytest.raises(UsageError, match=r"^w\.sql"):
        connection.execute("pragma show_tables")


def test_an_error_of_a_statement_stays_duckdbs(connection: Connection) -> None:
    with pytest.raises(duckdb.BinderException):
        connection.execute("select x from numbers")


def test_a_view_that_could_not_be_made_for_a_file_is_made_later(connection: Connection) -> None:
    """A PermissionException is of a path that is missing, say, and no fault of the view."""
    away = iter([True, False])

    def before() -> None:
        if next(away):
            raise duckdb.PermissionException("away")

    connection.add(View("create view late as from numbers", before=before))
    with pytest.raises(duckdb.PermissionException):
        connection.execute("from late")
    assert connection.execute("from late").fetchall() == [(1,), (2,)]


def test_a_text_of_several_statements_is_executed_once(connection: Connection) -> None:
    connection.execute("create temp table kept (number int)")
    with pytest.raises(duckdb.CatalogException, match="typo"):
        connection.execute("insert into kept values (2); from typo")
    assert connection.execute("from kept").fetchall() == [(2,)]


@pytest.mark.parametrize("begin", ["begin", "Begin Transaction", None])
def test_views_outlive_a_transaction(connection: Connection, begin: str | None) -> None:
    if begin:
        connection.execute(begin)
    else:
        connection.begin()
    assert connection.execute("from doubled").fetchone() == (2,)
    connection.execute("rollback")
    assert connection.execute("from doubled").fetchone() == (2,)


def test_two_views_of_a_name_are_refused(connection: Connection) -> None:
    again = View("create view Doubled as select 1 as number", [("q.sql: section 'd'", "select 1")])
    with pytest.raises(UsageError, match=r"^q\.sql: section 'd': there is a view doubled already;"):
        connection.add(again)


def test_names_in_any_case(connection: Connection) -> None:
    connection.add(View("create view Sums as select sum(number) as number from NUMBERS"))
    assert connection.execute("from sums").fetchall() == [(3,)]
    connection.make_all()
    assert len(connection.execute("pragma show_tables").fetchall()) == 3


def test_a_listing_of_another_catalog_has_all(connection: Connection) -> None:
    of_them = "select count(*) from pg_views where viewname in ('numbers', 'doubled')"
    assert connection.execute(of_them).fetchone() == (2,)
