"""Check the classes of a plugin (stage, record, measures) when its module is imported, so that a
mistake is one line then, not a failure of every document; and check the rows that a stage returns,
before they are committed."""

import dataclasses
import inspect
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, get_type_hints

from pipeline.core.errors import AccountingError, UsageError, contained
from pipeline.core.prompts import Prompt
from pipeline.core.registry import PARENT, Registry, file_of, is_ours
from pipeline.core.rows import Record, UnitRows, arrow_type, wrong_value

if TYPE_CHECKING:
    from pipeline.work.stage import Stage

# The function or class that makes each measure: one metric, one rubric of a judge, or the SQL of
# one table, whose stage may declare a column of the measure.
MEASURES: Registry[Any] = Registry("makes the measure {!r}")
_IN_SQL = re.compile(r"'([^']*)'\s+(?:as\s+)?measure\b", re.IGNORECASE)
_NAME = re.compile(r"[a-z]\w*", re.ASCII)


def refuse_wrong_stage(cls: Any, roles: tuple[str, ...]) -> None:
    """Raise UsageError, naming file, class and attribute, unless the stage can be executed."""
    for name, kind in (("name", str), ("version", int)):
        if not isinstance(getattr(cls, name, None), kind):
            raise _error(cls, name, f"is no {kind.__name__}; write `{name}: ClassVar[...] = ...`")
    if cls.__abstractmethods__:
        raise _error(cls, min(cls.__abstractmethods__), "is missing; write it")
    for name, base in (("reads", Record), ("prompts", Prompt)):
        classes = getattr(cls, name)
        if not isinstance(classes, tuple) or not all(_is_class(item, base) for item in classes):
            raise _error(cls, name, f"is no tuple of {base.__name__} classes; write `(Name,)`")
    if not inspect.iscoroutinefunction(cls.run):
        raise _error(cls, "run", "is not async; write `async def run(self, rows, ask)`")
    if cls.role not in roles:
        raise _error(cls, "role", f"{cls.role!r} is none; there are {', '.join(roles)}")
    writes = getattr(cls, "writes", None)
    if not _is_class(writes, Record) or not hasattr(writes, "table"):
        raise _error(cls, "writes", "is no Record class with a `table`; name one")
    if not is_ours(cls):  # a test checks our own: it takes 0.1 s of CPU time
        refuse_wrong_parts(writes, cls.prompts)


def refuse_wrong_parts(record: Any, prompts: Sequence[Any]) -> None:
    """Raise UsageError unless rows of the record can be written and each prompt has samples."""
    if "__dataclass_fields__" not in record.__dict__:
        how = "@dataclass(frozen=True, slots=True, kw_only=True)"
        raise _error(record, "table", f"is that of no dataclass; write `{how}` above the class")
    columns = [field.name for field in dataclasses.fields(record)]
    key = getattr(record, "key", None)
    if not isinstance(key, tuple) or not key:
        raise _error(record, "key", "is no tuple of columns; write `(name,)`")
    if unknown := [name for name in key if name not in columns]:
        raise _error(record, "key", f"no column {unknown[0]!r}; there are {', '.join(columns)}")
    hints = get_type_hints(record, include_extras=True)
    for name in columns:
        try:
            arrow_type(hints[name])
        except KeyError:
            takes = "str, int, float, bool, datetime, a tuple of one of them, or a dataclass"
            raise _error(record, name, f"is no column's type; a column is {takes}") from None
    for prompt in prompts:
        with contained() as raised:
            if prompt.samples():
                continue
        why = raised.line() if raised.error else "there are none"
        raise _error(prompt, "samples", f"is to return examples of the prompt; {why}")


def _is_class(value: object, base: type) -> bool:
    return isinstance(value, type) and issubclass(value, base)


def _error(cls: type, attribute: str, why: str) -> UsageError:
    return UsageError(f"{file_of(cls)}: {cls.__name__}.{attribute} {why}")


def register_measure(name: str, maker: Any) -> None:
    """Register a metric's function, or the class of a judge or stage. Raises UsageError, naming its
    file, if another measure has the name or no column can have it."""
    if not _NAME.fullmatch(name):
        why = "write a small letter, then letters, digits and _"
        raise UsageError(f"{file_of(maker)}: {maker.__name__}: the measure {name!r}: {why}")
    _register(name, maker)


def register_measures_of_sql(record: type[Record]) -> None:
    """Register the measures in the SQL of a plugin's table. Raises UsageError if another plugin's
    measure has the name, or ours."""
    for name in _IN_SQL.findall(record.sql().get("measures", "")):
        _register(name, record)


def _register(name: str, maker: Any) -> None:
    """Register a measure, unless a class of the same package has it already: a plugin's table makes
    the measure that a column of its stage shows."""

    def package(cls: Any) -> list[str]:
        parts: list[str] = cls.__module__.split(".")
        return parts[: 2 if parts[0] == PARENT else 1]

    other = MEASURES.get(name)
    are_classes = isinstance(other, type) and isinstance(maker, type)
    if not are_classes or package(other) != package(maker):
        MEASURES.add(name, maker)


def wrong_rows(stage: "Stage", rows: UnitRows, made: Any, is_checked: bool = True) -> str | None:
    """Describe the first wrong row, naming the stage's file: a wrong class, a column's value, an id
    that is not of the unit, or a repeated key; or, with `is_checked`, the error of `Stage.check`.
    None if no row is wrong."""
    record = stage.writes
    try:
        if not isinstance(made, list | tuple):
            raise AccountingError(
                f"returned {type(made).__name__}, not a list of {record.__name__}"
            )
        for number, row in enumerate(made):
            if type(row) is not record:
                name = type(row).__name__
                raise AccountingError(f"row {number} is of class {name}, not {record.__name__}")
        if why := wrong_value(record, made) or _wrong_key(record, rows, made):
            raise AccountingError(f"{record.table}: {why}")
        if is_checked:
            stage.check(rows, made)
    except AccountingError as error:
        return f"{file_of(type(stage))}: stage {stage.label()}: {error}"
    return None


def _wrong_key(record: type[Record], rows: UnitRows, made: Sequence[Record]) -> str | None:
    ids = {None, *(question.question_id for question in rows.questions)}
    keys = set()
    for number, row in enumerate(made):
        question = getattr(row, "question_id", None)
        if row.document_id != rows.document.document_id or question not in ids:
            return f"row {number}: {question or row.document_id!r} is not an input of this unit"
        key = tuple(getattr(row, name) for name in record.key)
        if key in keys:
            return f"row {number}: a row before it has the same {', '.join(record.key)}"
        keys.add(key)
    return None
