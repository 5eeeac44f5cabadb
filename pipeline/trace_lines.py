"""Lines that `gistmill trace` prints of rows, whatever their table."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# Columns that the reader of a trace knows: where a row stands and what made it.
_PLACE = (
    *("corpus", "step_id", "unit", "method", "repeat", "memory", "input_sha"),
    *("document_id", "question_id"),
)


@dataclass(frozen=True, slots=True)
class RawText:
    """A line that ends in a text which may be long: `gistmill trace` cuts it unless `--full`."""

    lead: str
    text: str


Line = str | RawText


def columns_told(row: Mapping[str, Any]) -> str:
    """A row of any table on one line: its columns and what they hold, but for its place."""
    told = {name: value for name, value in row.items() if name not in _PLACE and value is not None}
    return ", ".join(f"{name} {value}" for name, value in told.items())


def titled(
    title: str,
    rows: Iterable[Mapping[str, Any]],
    trace: Callable[[Mapping[str, Any]], Sequence[Line]],
) -> list[Line]:
    """A heading, and the lines of each row below it, set in."""
    lines = [line for row in rows for line in trace(row)]
    return [title, *(f"  {x}" if isinstance(x, str) else RawText(f"  {x.lead}", x.text)
                     for x in lines)]  # fmt: skip
