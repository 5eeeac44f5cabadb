"""SQL in files: a `.sql` file lies beside the module that uses it.

Each section begins with a line `-- name: NAME`, and may end with a semicolon. Comments before the
first section are about the whole file. Names in braces are filled in by a module.

The file of a table is `<table>.sql` beside the module of its record class, in plugins too. Each of
its sections is a view over the table, or the table's part of a view that commands read (`PARTS`). A
view's section is `create view {prefix}NAME as ...`. {prefix} is empty, or `all_` for a view whose
first column is `run`; {run} is then `run, `, else empty. Comments after the `create view` line say
what a row is, and `-- column: ...` what a column means, for `gistmill schema`. Parts join rows of a
memory by (memory, document_id, page_index).
"""

import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

from pipeline.core.errors import UsageError
from pipeline.core.settings import text_of

PARTS = (  # docs/schema.md has the columns of those that are also views
    "measures",  # whose means reports show
    "measured",  # has rows if `measures` has some; quicker to query
    "counts",  # whose values reports add up
    "sizes",  # the distributions of `report --corpus`
    "page_texts",  # what `gistmill show` has
    "results",  # what methods reply to questions
    "memories",  # memory, and columns of its own, one row per memory
    "traced",  # the rows that `gistmill trace` reads instead of the table's
)
_COMMENT = re.compile(r"^\s*(--.*)?$")


def sql_beside(module_file: str) -> Mapping[str, str]:
    """The sections of the `.sql` file beside a module, by name; `module_file`: its `__file__`."""
    return sql_sections(Path(module_file).with_suffix(".sql"))


@cache
def sql_sections(file: Path) -> Mapping[str, str]:
    """The sections of a file, by name. Raises UsageError for a mistake."""
    head, *parts = re.split(r"^-- name: *(.*?) *$\n?", text_of(file), flags=re.MULTILINE)
    if not all(map(_COMMENT.match, head.splitlines())):
        raise UsageError(f"{file}: SQL before the first section; begin it with `-- name: NAME`")
    sections: dict[str, str] = {}
    for name, section in zip(parts[::2], parts[1::2], strict=True):
        lines = section.splitlines()
        while lines and _COMMENT.match(lines[-1]):  # they belong to the next section
            lines.pop()
        if name in sections:
            raise UsageError(f"{file}: section {name!r}: twice; rename one")
        sections[name] = "\n".join(lines).strip().removesuffix(";").rstrip()
    return MappingProxyType(sections)


def filled(sql: str, **values: str) -> str:
    """The SQL with each `{name}` of `values` replaced; other braces stay, also in values."""
    return re.sub(r"\{(\w+)\}", lambda field: values.get(field[1], field[0]), sql)


def text(value: str) -> str:
    """A string as an SQL literal."""
    return "'" + value.replace("'", "''") + "'"


def table_file(module: str, table: str) -> Path | None:
    """A table's SQL file, if there is one; `module`: the name of its record class's module."""
    source = getattr(sys.modules.get(module), "__file__", None)
    file = Path(source).with_name(f"{table}.sql") if source else None
    return file if file is not None and file.is_file() else None


# Cached also because a worker's copy of a plugin's file exists only while its modules are imported.
@cache
def table_sql(module: str, table: str) -> Mapping[str, str]:
    """The sections of a table's file, by name; empty if it has no file. Raises UsageError, naming
    file and section, for a section that is neither a view nor one of `PARTS`."""
    file = table_file(module, table)
    sections = sql_sections(file) if file else {}
    for name, sql in sections.items():
        view = re.match(rf"(?i:create view) \{{prefix\}}{re.escape(name)} (?i:as)\s", sql)
        if name not in PARTS and not view:
            raise UsageError(
                f"{file}: section {name!r}: neither `create view {{prefix}}{name} as` nor one of "
                f"{', '.join(PARTS)}"
            )
    return sections


def view_names(sections: Mapping[str, str]) -> list[str]:
    """The names of the views among a table's sections, in lower case, as SQL ignores case."""
    return [name.lower() for name in sections if name not in PARTS]


def table_views(sections: Mapping[str, str], prefix: str) -> Iterator[tuple[str, str]]:
    """The views among a table's sections: section name, and `create view` statement."""
    for name, sql in sections.items():
        if name not in PARTS:
            yield name, filled(sql, prefix=prefix, run="run, " if prefix else "")
