"""A DuckDB connection that makes a view when a statement first names it, and reads the warehouse's
files alone; queries, their errors and limits. The only file that imports duckdb.

DuckDB's own locks refuse other files, settings and extensions, and it reads through a filesystem
that cannot write. A statement can change only tables in memory, until the connection ends. Works
with DuckDB 1.5 and 2.0.
"""

import os
import re
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from errno import EROFS
from functools import cached_property, lru_cache, partial
from typing import Any

import duckdb
from fsspec import AbstractFileSystem
from upath import UPath

from pipeline.core.errors import UsageError
from pipeline.core.rows import empty_table
from pipeline.core.settings import sha
from pipeline.core.sql_files import text
from pipeline.files.storage import (
    as_path,
    exists,
    file_size,
    is_remote,
    modified_at,
    read,
    with_retries,
    write,
)
from pipeline.store.shards.damaged_files import damaged_inside

DatabaseError = duckdb.Error
# Errors about a statement, its limits or the locks, which no file causes.
_OF_STATEMENTS = (
    duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException,
    duckdb.ConversionException, duckdb.OutOfRangeException,
)  # fmt: skip
_OF_LIMITS = (duckdb.OutOfMemoryException, duckdb.InterruptException, duckdb.PermissionException)
_READ = re.compile(r'\b(?:from|join|pivot|unpivot)[\s(]+"?(\w+)')
_OF_LOCKS = re.compile(r"configuration has been locked|disabled (by|through) configuration")
_OF_FILES = re.compile(r"^\w*Error: .*", re.MULTILINE)  # of the filesystem, after its traceback
# Statements that list views; and several in one text, which is not executed twice.
_OF_ALL_VIEWS = re.compile(
    r"\b(show|describe|duckdb_|information_schema|pg_|sqlite_|export)|;\s*\S"
)
# DuckDB's other methods that read views: later calls on what they return may name any view.
_OF_ALL = {"sql", "query", "from_query", "query_df", "table", "view", "executemany"}
_PROTOCOL = "read"
PREFIX = f"{_PROTOCOL}://"  # of the names by which DuckDB opens files
_MOST_COPIED = 8_000_000  # bytes of a remote file


class Connection:
    """DuckDB's in-memory connection, with all of its methods. Use it from one thread at a time.

    Making a view takes milliseconds: `execute` makes only those that follow FROM or JOIN in its
    statement, and those that they read. Statements that list views or name one in another way, and
    DuckDB's other methods, make all. `run`: the run that the views show; `files`: those that the
    views read; `raw`: DuckDB's own connection, which makes no view.
    """

    def __init__(self, run: str = "") -> None:
        self.run = run
        self.files: list[UPath] = []
        self.raw = duckdb.connect()
        self._views: dict[str, tuple[str, str]] = {}  # statement and section, by name
        self._made: set[str] = set()
        self.raw.register_filesystem(ReadOnlyFiles())
        self.raw.execute("set python_enable_replacements = false")  # views have simple names
        with suppress(duckdb.Error):  # in Jupyter without ipywidgets DuckDB has no progress bar
            self.raw.execute("set enable_progress_bar = false")

    def add(self, statement: str, section: str = "") -> None:
        """Add a view, or table, that `statement` creates: `create view NAME ...`. `section`: the
        .sql file and its section that it comes from. Raises UsageError if there is one of its name.
        """
        name = statement.split(None, 3)[2].lower()  # SQL does not distinguish cases
        if name in self._views:
            raise UsageError(f"{section}: there is a view {name} already; rename this one")
        self._views[name] = statement, section

    def create_table(self, name: str, columns: Any, rows: Sequence[Mapping[str, Any]]) -> None:
        """Create a table of `rows`, which have all `columns`, an Arrow schema."""
        # Not of an Arrow table: to make one of Python values imports pandas, 0.2 s of every
        # command, and DuckDB 1.5 hands it filters that it does not know.
        types = self.raw.from_arrow(empty_table(columns)).types
        typed = ", ".join(f'"{n}" {t}' for n, t in zip(columns.names, types, strict=True))
        self.raw.execute(f"create table {name} ({typed})")
        if rows:
            lists = [[row[column] for row in rows] for column in columns.names]
            selected = ", ".join(f"unnest(?::{type_}[])" for type_ in types)
            self.raw.execute(f"insert into {name} select {selected}", lists)

    def make_all(self) -> None:
        """Make all missing views. Raises UsageError naming file and section of wrong SQL."""
        self._made.clear()  # a transaction may have been rolled back, and what it made with it
        self._make(self._views)
        for name in self._views:  # in their order: a wrong part is named before what is made of it
            if name not in self._made:
                self._create(name)

    def execute(self, statement: Any, *args: Any, **named: Any) -> Any:
        """Make the views that the statement names, and execute it as DuckDB does."""
        code = _code(statement) if isinstance(statement, str) else "show"
        if has_all := bool(_OF_ALL_VIEWS.search(code)):
            self.make_all()
        else:
            self._make(_READ.findall(code))
        try:
            executed = self.raw.execute(statement, *args, **named)
        except duckdb.CatalogException:
            if has_all:
                raise
            self.make_all()  # a view is wrong or named in some other way, or the error suggests one
            executed = self.raw.execute(statement, *args, **named)
        except (*_OF_STATEMENTS, *_OF_LIMITS):
            raise
        except duckdb.Error as error:
            raise damaged_inside(self.files) or error from None
        return None if executed is None else self

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *of_error: object) -> None:
        self.raw.close()

    def __getattr__(self, name: str) -> Any:
        if name in _OF_ALL:
            self.make_all()
        return getattr(self.raw, name)

    def _make(self, names: Iterable[str]) -> None:
        """Make the views among the names, each after the views that it reads. A view whose SQL is
        wrong is left out: the name may be a common table expression's."""
        for name in names:
            if name in self._views and name not in self._made:
                self._made.add(name)  # first: a common table expression may have a view's name
                self._make(_READ.findall(_code(self._views[name][0])))
                try:
                    self._create(name)
                except UsageError:
                    self._made.discard(name)

    def _create(self, name: str) -> None:
        statement, section = self._views[name]
        create, kind, query = statement.split(None, 2)
        try:
            self.raw.execute(f"{create} {kind} if not exists {query}")
        except _OF_STATEMENTS as error:
            what = str(error).splitlines()[0]
            raise UsageError(f"{section or name}: {what}; correct it") from None


def _code(statement: str) -> str:
    """The statement in lower case, without comments and texts, paths among them."""
    return re.sub(r"--.*|'[^']*'", "", statement).lower()


def query(connection: Any, statement: str, most_rows: int | None = None) -> list[dict[str, Any]]:
    """The rows of a user's query, the first `most_rows` or all. Raises UsageError with DuckDB's
    error, and DamagedError if a file caused it: `connect` had read only the footers."""
    try:
        if (result := connection.execute(statement)) is None:
            raise UsageError("sql: empty query; write one, such as 'from documents limit 3'")
        rows = result.fetchall() if most_rows is None else result.fetchmany(most_rows)
    except (*_OF_STATEMENTS, *_OF_LIMITS) as error:
        raise _sql_error(str(error)) from None
    except duckdb.Error as error:
        raise damaged_inside(connection.files) or _sql_error(str(error)) from None
    names = [column[0] for column in connection.description or ()]
    # A second column `name` becomes `name_1`, as in DuckDB's tables.
    earlier = [names[:index].count(name) for index, name in enumerate(names)]
    unique = [f"{name}_{n}" if n else name for name, n in zip(names, earlier, strict=True)]
    return [dict(zip(unique, row, strict=True)) for row in rows]


def expression(key: str, text: str) -> str:
    """The text, if it is a single SQL expression. Raises UsageError naming the `key`."""
    try:
        duckdb.SQLExpression(text)
    except duckdb.Error as error:
        why = str(_sql_error(str(error))).removeprefix("sql: ")
        raise UsageError(f"{key}={text}: no SQL expression ({why})") from None
    return text


def _sql_error(text: str) -> UsageError:
    """DuckDB's error: its first line and the names it suggests; nothing else, such as values."""
    *_, text = _OF_FILES.findall(text) if text.startswith("Traceback") else [text]
    first, *more = text.splitlines()
    meant = [line for line in more if line.startswith(("Did you mean", "Candidate bindings"))]
    if _OF_LOCKS.search(first):
        meant.append("(a query reads the views alone; gistmill sql --unsafe lifts the locks)")
    return UsageError(" ".join([f"sql: {first}", *meant]))


def rows_within(
    connection: Any, statement: str, most_rows: int, seconds: float
) -> tuple[list[dict[str, Any]], bool]:
    """The first rows of a query, and True if there are more. Raises as `query` does, also if they
    take longer than `seconds`."""
    timer = threading.Timer(seconds, connection.raw.interrupt)
    timer.start()
    try:
        rows = query(connection, statement, most_rows + 1)
    except UsageError:
        if timer.is_alive():
            raise
        more = "ask for less, or add seconds=N"
        raise UsageError(f"sql: stopped after {seconds:g} seconds; {more}") from None
    finally:
        timer.cancel()
    return rows[:most_rows], len(rows) > most_rows


def lock(connection: Any, files: Iterable[UPath]) -> None:
    """Let a connection read `files` and nothing else, for good: no file is written, nothing is
    attached or installed, no setting changed, no variable of this process scanned."""
    connection.execute(f"set allowed_paths = {addresses(files)}")
    connection.execute("set temp_directory = ''")
    connection.execute("set disabled_filesystems = 'LocalFileSystem'")
    connection.execute("set enable_external_access = false")
    connection.execute("set lock_configuration = true")


def addresses(files: Iterable[UPath]) -> str:
    """The names by which DuckDB opens these files, as a list in SQL."""
    return "[" + ", ".join(text(f"{PREFIX}{file}") for file in files) + "]"


class ReadOnlyFiles(AbstractFileSystem):  # type: ignore[misc]  # fsspec has no types
    """Opens the files of `addresses` to read them. Of a remote file, what DuckDB reads is fetched,
    as its prompts and texts are seldom read; of a small one, everything, once, into a copy. Raises
    what their own filesystem raises."""

    protocol = _PROTOCOL
    cachable = False  # the copies are one connection's

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return path.removeprefix(PREFIX)

    def open(self, path: str, mode: str = "rb", **_: Any) -> Any:
        """A file to read. Raises OSError for every mode but `rb`."""
        if mode != "rb":
            raise OSError(EROFS, os.strerror(EROFS), path)
        file = self._source(path)
        if is_remote(file):
            return _OpenFile(partial(_fetched, file))
        descriptor = with_retries(
            partial(os.open, str(file), os.O_RDONLY), file, (FileNotFoundError,)
        )
        opened = _OpenFile(partial(os.pread, descriptor))
        opened.close = weakref.finalize(opened, os.close, descriptor)  # DuckDB may not close it
        return opened

    def glob(self, path: str, **_: Any) -> list[str]:
        """The path itself: it may hold characters that are a pattern elsewhere."""
        return [path]

    def size(self, path: str) -> int:
        return file_size(self._source(path))

    def modified(self, path: str) -> datetime:
        return datetime.fromtimestamp(modified_at(self._source(path)))

    def exists(self, path: str, **_: Any) -> bool:
        return exists(_file(path))

    def _source(self, path: str) -> UPath:
        """The file, or the copy of a small remote one."""
        if not is_remote(file := _file(path)):
            return file
        if path not in self._sources:
            if file_size(file) <= _MOST_COPIED:
                copy = self._copies / sha(path, 32)
                write(copy, read(file))
                file = copy
            self._sources[path] = file
        return self._sources[path]

    @cached_property
    def _sources(self) -> dict[str, UPath]:
        return {}

    @cached_property
    def _copies(self) -> UPath:
        folder = tempfile.mkdtemp(prefix="gistmill-sql-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return UPath(folder)


@lru_cache(maxsize=64)  # DuckDB asks for a file's size and age as it opens it
def _file(path: str) -> UPath:
    return as_path(path.removeprefix(PREFIX))


def _fetched(file: UPath, size: int, position: int) -> bytes:
    fetch = partial(file.fs.cat_file, file.path, start=position, end=position + size)
    content: bytes = with_retries(fetch, file, (FileNotFoundError,))
    return content


class _OpenFile:
    """A file with a position for each thread, as DuckDB seeks and reads in several at once.
    `read_at(size, position)` reads from the file."""

    def __init__(self, read_at: Callable[[int, int], bytes]) -> None:
        self._read_at = read_at
        self.close: Callable[[], object] = lambda: None
        self._of_thread = threading.local()

    def seek(self, position: int, whence: int = os.SEEK_SET) -> None:
        self._of_thread.position = position

    def tell(self) -> int:
        return getattr(self._of_thread, "position", 0)

    def read(self, size: int) -> bytes:
        content = self._read_at(size, self.tell())
        self._of_thread.position = self.tell() + len(content)
        return content
