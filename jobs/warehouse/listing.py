"""`gistmill ls`: the choices for a run, or the runs of a warehouse. `gistmill schema` and the page
docs/schema.md: every table and view with the meanings of its columns, and everything registered.

A table is described by the docstring of its record class and the comments beside the class's
fields, a view by comments in its SQL.
"""

import inspect
import re
import tempfile
import textwrap
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from itertools import dropwhile, groupby, takewhile
from operator import itemgetter
from pathlib import Path
from typing import Any

from upath import UPath

import pipeline.store.sql
from jobs.output.print_tables import Heading, Part, Table, on_one_line
from pipeline.core import errors
from pipeline.core.errors import Problem, UsageError
from pipeline.core.registry import REGISTRIES, conf_folders, hint, maker_of
from pipeline.core.rows import RECORDS, STAMPS, Record
from pipeline.core.sql_files import sql_sections
from pipeline.files.lease import RUN, holder
from pipeline.store import connect
from pipeline.store.runs.run_folder import RunFolder, write_plan
from stages.builtin import load_builtin

Rows = list[dict[str, Any]]
_GROUPS = ("corpus", "memory", "engine", "rater", "cluster", "experiment")  # of `conf`
_RUNS = """
select run, count(distinct d.document_id) filter (d.problem is null) as documents,
  count(distinct question_id) filter (q.problem is null) as questions,
  count(distinct method) as methods, count(distinct step_id) as steps,
  any_value(not_done) as not_done, any_value(problem_rate) as problem_rate
from all_planned left join raw_steps using (step_id)
left join all_documents d using (run, document_id)
left join all_questions q using (run, document_id, question_id)
left join (
  select run, sum(not_done) as not_done, max(problem / nullif(inputs, 0)) as problem_rate
  from all_accounting group by run
) using (run) group by run"""
_HEAD = """\
Made by `gistmill schema --markdown > docs/schema.md` from the record classes; do not edit. In
SQL, `gistmill sql` and `connect` show the rows of one run. Every view `all_NAME` has those of every
run, with the run's name in a first column `run`.

Words are counted by `stages/text/words.py`: in languages without spaces a word is a character.
Tokens are the engine's own. Positions count from 0, spans of characters are half-open, times are
UTC. A column of a view may be null where that of its tables may."""
_COLUMNS_OF_RUN = r"""
select table_name, column_name, data_type from duckdb_columns()
where not internal and not regexp_matches(table_name, '^(all|raw|no)_|_rows$')
order by table_name, column_index"""
_VIEW = re.compile(
    r"create (?:view|\{kind\}) (?:\{prefix\})?(\w+) as\s*\n((?:\s*--.*\n)*)", re.IGNORECASE
)
_MEANING = re.compile(r"^\s*-- (\w+): (.+)$", re.MULTILINE)
_FIELD = re.compile(r"    (\w+): ")


def registered() -> dict[str, Rows]:
    """By kind, a row for each registered one: name, first sentence, module."""
    load_builtin()
    return {
        kind: [
            {"name": name, "about": registry.about[name], "module": maker_of(maker).__module__}
            for name, maker in sorted(registry.items())
        ]
        for kind, registry in sorted(REGISTRIES.items())
    }


def listing(
    warehouse: UPath | None, plugins: str | None, kinds: Sequence[str] = ()
) -> dict[str, Rows]:
    """The runs of a warehouse; without one the choices of every config group, the methods
    and families, and everything registered, also by plugins. With `kinds` only these. Raises
    UsageError for an unknown kind."""
    rows_of_kinds = _choices(plugins) if warehouse is None else _warehouse(warehouse)
    for kind in kinds:
        if kind not in rows_of_kinds:
            raise UsageError(f"ls {kind}: no such kind; {hint(kind, [*rows_of_kinds])}")
    return {kind: rows_of_kinds[kind] for kind in kinds or rows_of_kinds}


def listing_parts(rows_of_kinds: Mapping[str, Rows]) -> Iterator[Part]:
    """A table per kind, except damaged files, which are on standard error, and except what is
    registered, unless that alone is asked for."""
    of_code = [kind for kind, rows in rows_of_kinds.items()
               if len(rows_of_kinds) > 1 and rows and "module" in rows[0]]  # fmt: skip
    for kind, rows in rows_of_kinds.items():
        if kind != "left_out" and kind not in of_code:
            numbers = ("documents", "questions", "methods", "steps")
            yield Heading(kind, 2)
            yield Table(rows, left=[name for row in rows for name in row if name not in numbers])
    if of_code:
        lists = ", ".join(of_code)
        yield f"gistmill ls KIND lists {lists}; gistmill schema NAME says all about one."


def _choices(plugins: str | None) -> dict[str, Rows]:
    """Each choice with the first sentence of its file's comment."""
    from pipeline.families.family import read_family_file  # `ls warehouse=` needs none of them
    from pipeline.work.methods import methods_in

    folders = conf_folders(plugins)
    groups = {group: [*map(_row, _files(folders, f"{group}/*.yaml"))] for group in _GROUPS}
    methods = []
    for file, arguments in methods_in([folder / "method" for folder in folders]).values():
        pairs = (f"{key}={'...' if value is None else value}" for key, value in arguments.items())
        methods.append({**_row(file), "arguments": ", ".join(pairs)})
    families = [
        {"name": file.parent.name, "base": ", ".join(read_family_file(file.parent).base)}
        for file in _files(folders, "prompts/*/family.yaml")
    ]
    return {**groups, "methods": methods, "families": families, **registered()}


def _files(folders: Sequence[Path], pattern: str) -> list[Path]:
    return [file for folder in folders for file in sorted(folder.glob(pattern))]


def _row(file: Path) -> dict[str, Any]:
    lines = file.read_text(encoding="utf-8").splitlines()
    lines_on = dropwhile(lambda line: not line.startswith("# ") or "@package" in line, lines)
    comment = " ".join(line[2:] for line in takewhile(lambda line: line.startswith("# "), lines_on))
    return {"name": file.stem, "about": re.split(r"(?<=\.)\s", comment)[0]}


def _warehouse(warehouse: UPath) -> dict[str, Rows]:
    from pipeline.store.sql.connect import readable_run  # `ls` alone needs no DuckDB
    from pipeline.store.sql.connection import query

    with connect(warehouse, readable_run(warehouse)) as connection:
        runs = query(connection, _RUNS)
        left_out = query(connection, "from left_out")
    runs = [_run(RunFolder(warehouse, row["run"]), row) for row in runs]
    runs.sort(key=lambda row: row["started_at"] or "", reverse=True)
    return {"runs": runs, "left_out": left_out}


def _run(folder: RunFolder, row: Mapping[str, Any]) -> dict[str, Any]:
    """State `problems`: in some step a larger share of rows than `max_problem_rate` has one."""
    config = folder.left_out.unless_damaged(folder.config, None) or {}
    facts, settings = config.get("report", {}), config.get("config", {})
    launches = folder.readable_launches()
    state = "complete"
    if holder(folder.path, RUN):
        state = "running"
    elif row["not_done"]:
        state = "incomplete"
    elif (row["problem_rate"] or 0.0) > settings.get("max_problem_rate", 0.0):
        state = "problems"
    return {
        "run": row["run"],
        "started_at": launches[-1].get("started_at") if launches else None,
        "corpus": facts.get("corpus"),
        "engine": facts.get("engine"),
        "state": state,
        **{name: row[name] for name in ("documents", "questions", "methods", "steps")},
    }


def read_schema(plugins: str | None = None) -> dict[str, Any]:
    """All tables and views of every warehouse, sorted by name, the problem codes with their
    meanings, and everything else that plugins may add. Raises UsageError for a plugin that cannot
    be loaded."""
    conf_folders(plugins)  # imports them
    source = inspect.getsource(errors)
    meanings = dict(re.findall(r'^    "(\w+)",  # (.+)$', source, re.MULTILINE))
    return {
        "tables": sorted(_tables(), key=itemgetter("is_view", "name")),
        "problems": {code: meanings.get(code, "") for code in typing.get_args(Problem)},
        "registered": registered(),
    }


def _tables() -> Iterator[dict[str, Any]]:
    """A dict per table and view. `type`: DuckDB's; `key`: the columns that identify a row within
    its step; `nullable`: None for columns of views."""
    views = _views()
    # The columns that several tables have are stamps, and the fields of the base classes.
    bases = dict.fromkeys(base for record in RECORDS.values() for base in record.__mro__)
    shared = dict(STAMPS)
    for base in bases:
        if base.__module__ == Record.__module__ and "table" not in base.__dict__:
            shared |= field_comments(base)
    for name, types in _column_types().items():
        nullable: set[str] | None = None
        key: tuple[str, ...] = ()
        if record := RECORDS.get(name):
            about, key = on_one_line(record.__doc__ or ""), record.key
            meanings = {**STAMPS, **field_comments(record)}
            hints = typing.get_type_hints(record).items()
            nullable = {field for field, type_ in hints if type(None) in typing.get_args(type_)}
        else:
            about, of_view = views.get(name, ("", {}))
            meanings = {**shared, **of_view}
        columns = [
            {"name": column, "type": kind, "meaning": meanings.get(column, ""),
             "nullable": None if nullable is None else column in nullable}
            for column, kind in types.items()
        ]  # fmt: skip
        yield {"name": name, "is_view": not record, "about": about, "key": key, "columns": columns}


def _column_types() -> dict[str, dict[str, str]]:
    """The columns with DuckDB's types, by table and view of an empty warehouse."""
    with tempfile.TemporaryDirectory(prefix="gistmill-") as folder:
        write_plan(Path(folder) / "runs" / "empty" / "units.parquet", [])
        with connect(folder) as connection:
            rows = connection.execute(_COLUMNS_OF_RUN).fetchall()
    tables = groupby(rows, itemgetter(0))
    return {table: {column: kind for _, column, kind in of_table} for table, of_table in tables}


def field_comments(cls: type) -> dict[str, str]:
    """The comment of every field, by name: the one behind the field, else the one right above it.
    Inherited fields are included. Fields without a comment are left out, and the fields of classes
    without a source file."""
    comments: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        try:
            source = textwrap.dedent(inspect.getsource(base))
        except (OSError, TypeError):
            continue
        name, above = "", list[str]()
        for line in source.splitlines():
            code, _, comment = f" {line}".partition(" # ")
            if not code.strip():
                above = [*above, comment] if comment else []
                continue
            if field := _FIELD.match(line):
                name = field[1]
                comments |= {name: " ".join(above)} if above else {}
            elif line[:5].strip():  # a method, or the end of a value
                name = name if line[:5] in ("    ]", "    )", "    }") else ""
            if name and comment and "fmt:" not in comment:
                comments[name] = comment
            above = []
    return comments


def _views() -> dict[str, tuple[str, dict[str, str]]]:
    """What the comments after `create view NAME as` say of each view, and of its columns."""
    views: dict[str, tuple[str, dict[str, str]]] = {}
    of_all = [sql_sections(file) for file in Path(pipeline.store.sql.__file__).parent.glob("*.sql")]
    of_records = [record.sql() for record in RECORDS.values()]
    for sql in (sql for sections in (*of_all, *of_records) for sql in sections.values()):
        if view := _VIEW.match(sql):
            lines = [line.strip().removeprefix("-- ") for line in view[2].splitlines()]
            about = [line for line in lines if not _MEANING.match(f"-- {line}")]
            views[view[1]] = " ".join(about), dict(_MEANING.findall(view[2]))
    for sections in of_records:
        views["memories"][1].update(_MEANING.findall(sections.get("memories", "")))
    return views


def named(schema: Mapping[str, Any], name: str) -> Rows:
    """Everything of this name in `read_schema`'s result: tables and views, also by the names of
    their all_ views, and registered ones. Raises UsageError if there is nothing."""
    tables = [table for table in schema["tables"] if table["name"] == name.removeprefix("all_")]
    if of_name := [*tables, *_registered_as(name)]:
        return of_name
    rows = [*schema["tables"], *(row for rows in schema["registered"].values() for row in rows)]
    near = hint(name, [*dict.fromkeys(row["name"] for row in rows)])
    raise UsageError(f"{name}: no table, view, stage, metric or prompt; {near}")


def _registered_as(name: str) -> Rows:
    """A row for everything that is registered by this name, and for every kind of the stage of this
    name: its kind, module and docstring, and its settings, or a prompt's fields, with comments."""
    rows = []
    for kind, registry in sorted(REGISTRIES.items()):
        for label in sorted(x for x in registry if name in (x, x.partition(" (kind ")[0])):
            maker, about, settings = maker_of(registry[label]), registry.about[label], list[str]()
            if kind != "columns":  # a column has no class: `maker` is the stage's
                about = maker.__doc__ or about
                settings = [*getattr(maker, "model_fields", ())]
                settings = [f.name for f in fields(maker)] if is_dataclass(maker) else settings
            comments = field_comments(maker) if settings else {}
            rows.append({
                "name": label, "is": kind.removesuffix("s"), "module": maker.__module__,
                "about": on_one_line(about),
                "settings": {key: comments.get(key, "") for key in settings},
            })  # fmt: skip
    return rows


def schema_parts(schema: Mapping[str, Any]) -> list[Part]:
    rows = [{"name": t["name"], "is": _kind(t), "a row is": t["about"]} for t in schema["tables"]]
    tables = Table(rows, left=("is", "a row is"))
    return [tables, _problems(schema)]


def named_parts(rows: Rows) -> Iterator[Part]:
    """The columns of a table, the settings of others."""
    for row in rows:
        if "columns" in row:
            yield f"{row['name']}, a {_kind(row)}: {row['about']}"
            yield _columns(row)
        else:
            yield f"{row['name']}, {row['is']} of {row['module']}: {row['about']}"
            what = "field" if row["is"] in ("prompt", "rubric") else "setting"
            if settings := [{what: key, "meaning": text} for key, text in row["settings"].items()]:
                yield Table(settings, left=("meaning",))


def schema_page(schema: Mapping[str, Any]) -> Iterator[Part]:
    yield Heading("Tables, views and columns")
    yield _HEAD
    for is_view, title in ((False, "Tables"), (True, "Views")):
        yield Heading(title, level=2)
        for table in (table for table in schema["tables"] if table["is_view"] == is_view):
            key = f" A row's key in its step: {', '.join(table['key'])}." if table["key"] else ""
            yield Heading(table["name"], level=3)
            yield table["about"] + key
            yield _columns(table)
    yield Heading("Problem codes", level=2)
    yield _problems(schema)
    for kind, rows in schema["registered"].items():
        yield Heading(kind.capitalize(), level=2)
        yield Table(rows, left=("about", "module"))


def _kind(table: Mapping[str, Any]) -> str:
    return "view" if table["is_view"] else "table"


def _columns(table: Mapping[str, Any]) -> Table:
    rows = [
        {"column": c["name"], "type": c["type"] + ", null" * bool(c["nullable"]),
         "meaning": c["meaning"]}
        for c in table["columns"]
    ]  # fmt: skip
    return Table(rows, left=("type", "meaning"))


def _problems(schema: Mapping[str, Any]) -> Table:
    rows = [{"problem": code, "meaning": text} for code, text in schema["problems"].items()]
    return Table(rows, left=("meaning",))
