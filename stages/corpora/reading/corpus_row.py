"""One row of a corpus's file, with its file and line."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from upath import UPath

from pipeline.core.errors import UsageError
from stages.corpora.reading.row_checks import (
    BadInputError,
    kind_of,
    label_of,
    name_of,
)


@dataclass(frozen=True, slots=True)
class Row:
    """A JSON object with its file and line. `value` null: not an object, for the reason `wrong`.
    `note`: what is not certain of its text, after the file's name, and what to do."""

    file: UPath
    line: int  # from 1; in Parquet and JSON lists the number of the row
    value: dict[str, Any] | None
    wrong: str = ""
    start: int = 0  # position of the line's first byte in the file
    inside: str = ""  # `key[index]` of an object within the line's object
    note: str | None = None

    @property
    def place(self) -> str:
        """`file name:line`, followed by `:key[index]` for an object within the line's object."""
        inside = f":{self.inside}" if self.inside else ""
        return f"{name_of(self.file.name)}:{self.line}{inside}"

    def given_id(self, key: str) -> str | None:
        """The id under `key`; None where it is missing, empty or not a string or number."""
        try:
            return label_of(self.value or {}, key) or None
        except BadInputError:
            return None

    def sure(self) -> "Row":
        """The row; raises UsageError where it is no object, or its encoding is a guess."""
        if self.value is None or self.note:
            raise UsageError(self.note or self.detail(self.wrong))
        return self

    def detail(self, wrong: BadInputError | str) -> str:
        """`file:line: what is wrong; what to do`, the text for a bad row's `detail`."""
        within = f"{self.inside}: " if self.inside else ""
        return f"{name_of(self.file.name)}:{self.line}: {within}{wrong}"


def rows_within(row: Row, key: str) -> Iterator[Row]:
    """Yield a Row per object in the list under `key`.

    An entry that is not an object gives a Row without a value, and so does a `key` that is no list.
    """
    if row.value is None:
        return
    entries = row.value.get(key)
    if not isinstance(entries, list):
        wrong = f"{kind_of(entries)}, not a list; fix it"
        yield replace(row, value=None, wrong=wrong, inside=key)
        return
    for index, entry in enumerate(entries):
        value = entry if isinstance(entry, dict) else None
        wrong = "" if value is not None else f"{kind_of(entry)}, not an object; fix or delete it"
        yield replace(row, value=value, wrong=wrong, inside=f"{key}[{index}]")
