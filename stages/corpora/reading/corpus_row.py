"""One row of a corpus's file, and the ids of what it holds."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from upath import UPath

from pipeline.core.errors import UsageError
from stages.corpora.reading import values
from stages.corpora.reading.values import BadInputError, Value

GivenId = tuple[str, str | None]  # an id, and why its row is bad input
_HEX_DIGITS = 16  # of an id that is made


@dataclass(frozen=True, slots=True)
class Row:
    """A JSON object with its file and line. `value` is None if it is not an object, for the reason
    `wrong`. `note`: doubts about its encoding."""

    file: UPath
    line: int  # from 1; in Parquet and JSON lists the number of the row
    value: Value | None
    wrong: str = ""
    inside: str = ""  # `key[index]` of an object within the line's object
    note: str | None = None

    @property
    def place(self) -> str:
        """`file name:line`, and `:key[index]` of an object within the line's object."""
        inside = f":{self.inside}" if self.inside else ""
        return f"{values.name_of(self.file.name)}:{self.line}{inside}"

    def given_id(self, key: str) -> str | None:
        """The id under `key`; None without a usable one."""
        try:
            return values.label_of(self.value or {}, key) or None
        except BadInputError:
            return None

    def sure(self) -> "Row":
        """The row itself. Raises UsageError where it is no object, or its encoding is a guess."""
        if self.value is None or self.note:
            raise UsageError(self.note or self.detail(self.wrong))
        return self

    def detail(self, wrong: BadInputError | str) -> str:
        """`file:line: what is wrong; what to do`, the text for a bad row's `detail`."""
        within = f"{self.inside}: " if self.inside else ""
        return f"{values.name_of(self.file.name)}:{self.line}: {within}{wrong}"


def rows_within(row: Row, key: str) -> Iterator[Row]:
    """A Row per entry of the list under `key`, without a value where it is no object; one such Row
    for a `key` that is no list."""
    entries = row.value.get(key) if row.value is not None else []
    if not isinstance(entries, list):
        wrong = f"{values.kind_of(entries)}, not a list; fix it"
        yield replace(row, value=None, wrong=wrong, inside=key)
        return
    for index, entry in enumerate(entries):
        inside = replace(row, value=None, inside=f"{key}[{index}]")
        if isinstance(entry, dict):
            yield replace(inside, value=entry)
        else:
            yield replace(inside, wrong=f"{values.kind_of(entry)}, not an object; fix or delete it")


class Ids:
    """Gives ids to the documents or the questions of a corpus; no two rows have the same id. An id
    depends neither on `limit` nor on the split or other files. It is one of:

    1. The id in the file, where the format has ids. A second row with the same id is bad input.
    2. Otherwise 16 hex digits: a hash of the row's content and of the number of earlier copies in
       its file. Copies within a file are kept (126 questions in NarrativeQA are repeated, and its
       published scores count them all); a copy in another file that is also read is bad input.
    3. `file name:line`, for a row that is bad input for one of these reasons, or is not an object.
    """

    def __init__(self) -> None:
        self._places: dict[str, str] = {}  # id -> the place of the row that has it
        self._num_copies: Counter[tuple[str, str]] = Counter()  # by file name and content

    def claim(self, wanted: str, row: Row) -> str | None:
        """Give the id to the row, or return the place of the row that already has it."""
        if wanted in self._places:
            return self._places[wanted]
        self._places[wanted] = row.place
        return None

    def of_place(self, row: Row) -> str:
        """`file name:line`, hashed if another row has that as its id."""
        row_id = row.place
        while self.claim(row_id, row) is not None:
            row_id = _sha(row_id)[:_HEX_DIGITS]
        return row_id

    def of_given(self, row: Row, key: str) -> GivenId:
        """The id under `key`; and why the row is bad input, or None."""
        if row.value is None:
            return self.of_place(row), row.wrong
        try:
            given = values.label_of(row.value, key)
        except BadInputError as wrong:
            return self.of_place(row), str(wrong)
        if not given:
            return self.of_place(row), f"no `{key}`; add it"
        if (first := self.claim(given, row)) is None:
            return given, None
        repeated = f"`{key}` {values.shown(given)} is used twice, first in {first}"
        return self.of_place(row), f"{repeated}; give this row another or delete it"

    def of_row(self, row: Row, key: str | None, *content: Any) -> GivenId:
        """The id under `key` (None: the format has no ids), else one made from `content`, the
        file's values before any cleaning; and why the row is bad input, or None."""
        if row.value is None or (key and row.value.get(key) not in (None, "")):
            return self.of_given(row, key or "")
        sha = _sha(content)
        number = self._num_copies[row.file.name, sha]
        self._num_copies[row.file.name, sha] += 1
        row_id = _sha([sha, number])[:_HEX_DIGITS]
        if (first := self.claim(row_id, row)) is None:
            return row_id, None
        wrong = f"the same content as in {first}; delete one of the two"
        return self.of_place(row), f"{wrong} or give each a `{key}`" if key else wrong


def _sha(content: Any) -> str:
    try:
        text = json.dumps(content, ensure_ascii=True, sort_keys=True, default=str)
    except RecursionError:  # a bad row, which needs an id nevertheless
        text = "nested too deeply"
    return hashlib.sha256(text.encode()).hexdigest()
