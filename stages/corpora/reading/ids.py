"""Ids of documents and questions: those in the file, or hashes of a row's content."""

import hashlib
import json
from collections import Counter
from typing import Any

from stages.corpora.reading.corpus_row import BadInputError, Row, label_of, shown

_HEX_DIGITS = 16


class Ids:
    """Gives ids to the documents or the questions of a corpus; no two rows have the same id.

    An id is one of three. None depends on `limit`, on the split or on other files:

    1. The id in the file, where the format has ids. A second row with the same id is bad input.
    2. Otherwise 16 hex digits: a hash of the row's content and of the number of earlier rows in the
       same file with the same content. Copies within a file are all kept, each with its own id (126
       questions in NarrativeQA are repeated, and its published scores count them all). A copy in
       another file gets the same id; where both files are read it is bad input, since the corpus
       would count it twice by mistake.
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
        made = row.place
        while self.claim(made, row) is not None:
            made = _sha(made)[:_HEX_DIGITS]
        return made

    def of_given(self, row: Row, key: str) -> tuple[str, str | None]:
        """The id under `key`; and why the row is bad input, or None."""
        if row.value is None:
            return self.of_place(row), row.wrong
        try:
            given = label_of(row.value, key)
        except BadInputError as wrong:
            return self.of_place(row), str(wrong)
        if not given:
            return self.of_place(row), f"no `{key}`; add it"
        first = self.claim(given, row)
        if first is None:
            return given, None
        repeated = f"`{key}` {shown(given)} is used twice, first in {first}"
        return self.of_place(row), f"{repeated}; give this row another or delete it"

    def of_content(self, row: Row, *content: Any) -> tuple[str, str | None]:
        """An id made from `content`, JSON values as in the file before any cleaning; and why the
        row is bad input, or None."""
        copy = row.file.name, _sha(content)
        made = _sha([copy[1], self._num_copies[copy]])[:_HEX_DIGITS]
        self._num_copies[copy] += 1
        first = self.claim(made, row)
        if first is None:
            return made, None
        return self.of_place(row), f"the same content as in {first}; delete one of the two"

    def of_row(self, row: Row, key: str | None, *content: Any) -> tuple[str, str | None]:
        """The id under `key`, else one made from `content`; and why the row is bad input, or None.
        `key` is None where the format has no ids."""
        if row.value is None or (key and row.value.get(key) not in (None, "")):
            return self.of_given(row, key or "")
        made, wrong = self.of_content(row, *content)
        return made, f"{wrong} or give each a `{key}`" if wrong and key else wrong


def _sha(content: Any) -> str:
    try:
        text = json.dumps(content, ensure_ascii=True, sort_keys=True, default=str)
    except RecursionError:  # a bad row, which needs an id nevertheless
        text = "nested too deeply"
    return hashlib.sha256(text.encode()).hexdigest()
