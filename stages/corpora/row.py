"""A row of a corpus's file and its place."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from upath import UPath

from stages.corpora.checks import BadInputError, kind_of, label_of, whole_text


@dataclass(frozen=True, slots=True)
class Row:
    """A JSON object and where it stands. `value` is null where it is none: see `wrong`."""

    file: UPath
    line: int  # from 1; in Parquet the number of the row
    value: dict[str, Any] | None
    wrong: str = ""
    start: int = 0  # byte where the line starts
    inside: str = ""  # `key[index]` for an object within the line's object

    @property
    def made_id(self) -> str:
        """The id of a row that has none and no content to make one from."""
        inside = f":{self.inside}" if self.inside else ""
        return f"{whole_text(stem(self.file))}:{self.line}{inside}"

    def given_id(self, key: str) -> str | None:
        """The id under `key` if the row has a legal one; an empty string is none."""
        try:
            return label_of(self.value or {}, key) or None
        except BadInputError:
            return None

    def detail(self, wrong: BadInputError | str) -> str:
        """`file:line: what is wrong; the mend`, for a row's `detail`."""
        within = f"{self.inside}: " if self.inside else ""
        return f"{whole_text(self.file.name)}:{self.line}: {within}{wrong}"


def rows_within(row: Row, key: str) -> Iterator[Row]:
    """The objects in the list under `key`; what is no object, or no list, is an unreadable row."""
    if row.value is None:
        return
    entries = row.value.get(key)
    if not isinstance(entries, list):
        wrong = f"{kind_of(entries)}, not a list; mend it"
        yield replace(row, value=None, wrong=wrong, inside=key)
        return
    for index, entry in enumerate(entries):
        value = entry if isinstance(entry, dict) else None
        wrong = "" if value is not None else f"{kind_of(entry)}, not an object; mend or delete it"
        yield replace(row, value=value, wrong=wrong, inside=f"{key}[{index}]")


def stem(file: UPath) -> str:
    """The file's name without its suffix, and without `.gz`."""
    name = file.name.removesuffix(".gz")
    return name.rpartition(".")[0] or name
