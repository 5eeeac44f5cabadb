"""The lines that `gistmill trace` prints for rows of any table."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.core.errors import contained

# Columns left out of a trace, as its headings identify the row already.
PLACE = (
    *("corpus", "step_id", "unit", "method", "repeat", "memory", "input_sha"),
    *("document_id", "question_id"),
)


@dataclass(frozen=True, slots=True)
class RawText:
    """A line that ends with a possibly long text, which `gistmill trace` cuts without `--full`."""

    lead: str
    text: str


Line = str | RawText
Rows = Sequence[Mapping[str, Any]]


_VECTOR = 16  # numbers; shorter lists are printed


def is_vector(value: object) -> bool:
    """True for a list of fractions too long to print."""
    is_long = isinstance(value, list | tuple) and len(value) >= _VECTOR
    return is_long and all(isinstance(one, float) for one in value)  # type: ignore[attr-defined]


def columns_line(row: Mapping[str, Any]) -> str:
    """Names and values of a row's columns on one line, without ids, SQL nulls and vectors."""
    shown = {
        name: value
        for name, value in row.items()
        if name not in PLACE and value is not None and not is_vector(value)
    }
    return ", ".join(f"{name} {value}" for name, value in shown.items())


def lines_of(trace: Callable[[Rows], Sequence[Line]], rows: Rows) -> Sequence[Line]:
    """The lines that `trace` makes of rows. If a plugin's `trace` raises, its error and the rows'
    columns."""
    with contained() as raised:
        return trace(rows)
    return [raised.line(), *map(columns_line, rows)]


def titled(
    title: str,
    rows: Iterable[Mapping[str, Any]],
    trace: Callable[[Mapping[str, Any]], Sequence[Line]],
) -> list[Line]:
    lines = [line for row in rows for line in trace(row)]
    return [title, *(f"  {x}" if isinstance(x, str) else RawText(f"  {x.lead}", x.text)
                     for x in lines)]  # fmt: skip
