"""Rows of a corpus's files: typed access to their values, and the ids of what they hold.

None counts as an absent value; a value of the wrong type raises BadInputError.
"""

import hashlib
import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from string import ascii_uppercase
from typing import Any

from upath import UPath

from pipeline.core.errors import UsageError

Value = dict[str, Any]  # the JSON object of a row
GivenId = tuple[str, str | None]  # an id, and why its row is bad input
_KINDS = {bool: "a boolean", int: "a number", float: "a number", str: "a string",
          list: "a list", dict: "an object", type(None): "null"}  # fmt: skip
_HEX_DIGITS = 16  # of an id that is made
_NUMBER = re.compile(r"[0-9]{1,9}(\.0*)?")


class BadInputError(Exception):
    """A row cannot be used. The message says why and what to do; the caller adds file and line."""


def kind_of(value: Any) -> str:
    return _KINDS.get(type(value), type(value).__name__)


def shown(value: Any) -> str:
    """A value as JSON for messages, cut after 80 characters."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except RecursionError:
        return "(nested too deeply)"
    return text if len(text) <= 80 else f"{text[:80]}..."


def without_lone_surrogates(text: str) -> str:
    """The text with U+FFFD for every lone surrogate, which UTF-8 cannot store."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def without_nan(value: Any) -> Any:
    """None in place of NaN, which pandas has for missing values and JSON lacks."""
    if isinstance(value, float):
        return None if math.isnan(value) else value
    if isinstance(value, dict):
        return {key: without_nan(inner) for key, inner in value.items()}
    return [*map(without_nan, value)] if isinstance(value, (list, tuple)) else value


def name_of(text: str) -> str:
    """An id or name as it is stored: in Unicode's NFC, since file systems may return NFD."""
    return unicodedata.normalize("NFC", without_lone_surrogates(text))


def text_of(row: Value, key: str) -> str:
    text = optional_text(row, key)
    if text is None:
        raise BadInputError(f"no `{key}`; add it")
    return text


def optional_text(row: Value, key: str) -> str | None:
    """The string under `key`, None where absent; a date from Parquet is returned in ISO format."""
    value = row.get(key)
    if isinstance(value, date):
        return value.isoformat()
    if value is None or isinstance(value, str):
        return value
    raise BadInputError(f"`{key}` is {kind_of(value)}, not a string; fix it")


def question_of(row: Value, key: str) -> str:
    text = text_of(row, key)
    if not text.strip():
        raise BadInputError(f"`{key}` is empty; write the question or delete it")
    return text


def label_of(row: Value, key: str) -> str | None:
    """The id or title under `key`, None where absent. A number becomes its JSON text."""
    value = row.get(key)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return json.dumps(value)
    label = optional_text(row, key)
    return None if label is None else name_of(label)


def labels_of(row: Value, keys: Iterable[str]) -> Value:
    return {key: label for key in keys if (label := label_of(row, key))}


def texts_of(row: Value, key: str) -> tuple[str, ...]:
    texts = row.get(key)
    if texts is None:
        return ()
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise BadInputError(f"`{key}` is not a list of strings; fix it")
    return tuple(texts)


def one_or_more(row: Value, key: str) -> tuple[str, ...]:
    """The one text or the list of texts under `key`. Numbers and booleans are written as in JSON
    (4.0 as 4), dates in ISO format."""
    value = row.get(key)
    texts = []
    for entry in value if isinstance(value, list) else [] if value is None else [value]:
        if isinstance(entry, (str, Decimal)):
            texts.append(str(entry))
        elif isinstance(entry, date):
            texts.append(entry.isoformat())
        elif isinstance(entry, (bool, int, float)):
            number = whole_number(entry)
            texts.append(json.dumps(entry if number is None else number))
        else:
            raise BadInputError(f"`{key}` is not a list of strings; fix it")
    return tuple(texts)


def list_of(row: Value, key: str) -> list[Any]:
    value = row.get(key)
    if not isinstance(value, list):
        raise BadInputError(f"`{key}` is {kind_of(value)}, not a list; fix it")
    return value


def texts_within(entries: Any, where: str, *keys: str) -> Iterator[tuple[Value, list[str]]]:
    """Yield each object of a list, with its texts under the keys. Raises BadInputError, which names
    `where[index]`."""
    for index, entry in enumerate(list_of({where: entries}, where)):
        if not isinstance(entry, dict):
            raise BadInputError(f"`{where}[{index}]` is {kind_of(entry)}, not an object; fix it")
        try:
            yield entry, [text_of(entry, key) for key in keys]
        except BadInputError as wrong:
            raise BadInputError(f"{where}[{index}]: {wrong}") from wrong


def single(value: Any) -> tuple[Any, ...]:
    return () if value is None else (value,)


def present(row: Value, keys: Iterable[str]) -> Value:
    """The keys that have a value."""
    return {key: value for key in keys if (value := row.get(key)) is not None}


def whole_number(value: Any) -> int | None:
    """An int, also for a float without a fraction, as pandas writes a column with gaps; or None."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def choice_of(row: Value, key: str, first: int | None, num_options: int) -> int | None:
    """The position, from 0, of the option that `key` names by a letter or a number, which may be
    text; None where absent. The file numbers options from `first`; None: only letters name them."""
    value = row.get(key)
    if value is None:
        return None
    text = value.strip().upper() if isinstance(value, str) and num_options else ""
    number = int(float(text)) if _NUMBER.fullmatch(text) else whole_number(value)
    if first is None or (text and not text.isdecimal() and number is None):
        letters = ascii_uppercase[:num_options]
        if len(text) != 1 or text not in letters:
            raise BadInputError(f"`{key}` {shown(value)} is no letter of {letters}; fix it")
        return letters.index(text)
    if number is None or not first <= number < first + num_options:
        last = first + num_options - 1
        legal = f"a number from {first} to {last}" if num_options else "possible without options"
        raise BadInputError(f"`{key}` {shown(value)} is not {legal}; fix it")
    return number - first


def json_object(row: Value, key: str) -> Value:
    """The object under `key`, which may be JSON text; empty where absent."""
    value = row.get(key)
    if value is None:
        return {}
    if isinstance(value, str):
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    if not isinstance(value, dict):
        raise BadInputError(f"`{key}` is no JSON object; fix it")
    return value


def json_text(values: Value) -> str:
    try:
        text = json.dumps(values, ensure_ascii=False, allow_nan=False, default=str)
    except (ValueError, TypeError, RecursionError) as error:
        raise BadInputError(f"metadata cannot be written as JSON ({error}); fix it") from error
    return without_lone_surrogates(text)


def metadata_of(row: Value, columns: Collection[str]) -> str:
    """The row's `metadata` and the values of all other columns than these, as one JSON text."""
    rest = {key: row[key] for key in row if row[key] is not None and key not in columns}
    return json_text({**rest, **json_object(row, "metadata")})


@dataclass(frozen=True, slots=True)
class Row:
    """A JSON object with its file and line. `value` is None where the line holds no object; `wrong`
    says why. `note`: doubts about its encoding."""

    file: UPath
    line: int  # from 1; in Parquet and JSON lists the number of the row
    value: Value | None
    wrong: str = ""
    inside: str = ""  # `key[index]` of an object within the line's object
    note: str | None = None

    @property
    def place(self) -> str:
        """`file name:line`, or `file name:line:key[index]`."""
        inside = f":{self.inside}" if self.inside else ""
        return f"{name_of(self.file.name)}:{self.line}{inside}"

    def given_id(self, key: str) -> str | None:
        """The id under `key`; None where it has none that can be used."""
        try:
            return label_of(self.value or {}, key) or None
        except BadInputError:
            return None

    def sure(self) -> "Row":
        """Return the row. Raises UsageError where it is no object, or its encoding is a guess."""
        if self.value is None or self.note:
            raise UsageError(self.note or self.detail(self.wrong))
        return self

    def detail(self, wrong: BadInputError | str) -> str:
        """`file:line: what is wrong; what to do`, for the `detail` of a bad row."""
        within = f"{self.inside}: " if self.inside else ""
        return f"{name_of(self.file.name)}:{self.line}: {within}{wrong}"


def row_of(file: UPath, line: int, value: Any, inside: str = "") -> Row:
    """The Row of any JSON value; it has none where that is no object."""
    if isinstance(value, dict):
        return Row(file, line, value, inside=inside)
    return Row(file, line, None, f"{kind_of(value)}, not an object; fix or delete it", inside)


def rows_within(row: Row, key: str) -> Iterator[Row]:
    """Yield a Row per entry of the list under `key`. It has no value where the entry is no object;
    one such Row stands for a `key` that holds no list."""
    entries = row.value.get(key) if row.value is not None else []
    if not isinstance(entries, list):
        wrong = f"{kind_of(entries)}, not a list; fix it"
        yield replace(row, value=None, wrong=wrong, inside=key)
        return
    for index, entry in enumerate(entries):
        yield row_of(row.file, row.line, entry, f"{key}[{index}]")


class Ids:
    """Gives each document, or each question, of a corpus an id of its own. An id depends neither on
    `limit` nor on the split or other files. It is one of:

    1. The id in the file, where the format has ids. A second row with the same id is bad input.
    2. Otherwise 16 hex digits: a hash of the row's content and of the number of earlier copies in
       its file. Copies within a file are kept: 126 questions in NarrativeQA are repeated, and its
       published scores count them all. A copy in another file that is also read is bad input.
    3. `file name:line`, for a row that is bad input for one of these reasons, or is not an object.
    """

    def __init__(self) -> None:
        self._places: dict[str, str] = {}  # of the row that has an id, by that id
        self._num_copies: Counter[tuple[str, str]] = Counter()  # by file name and content

    def claim(self, wanted: str, row: Row) -> str | None:
        """Give the id to the row and return None, or return the place of the row that has it."""
        if (holder := self._places.get(wanted)) is None:
            self._places[wanted] = row.place
        return holder

    def of_place(self, row: Row) -> str:
        """`file name:line`, hashed if another row has that id."""
        row_id = row.place
        while self.claim(row_id, row) is not None:
            row_id = _sha(row_id)[:_HEX_DIGITS]
        return row_id

    def of_given(self, row: Row, key: str) -> GivenId:
        """The id under `key`, and why the row is bad input, or None."""
        if row.value is None:
            return self.of_place(row), row.wrong
        try:
            given = label_of(row.value, key)
        except BadInputError as wrong:
            return self.of_place(row), str(wrong)
        if not given:
            return self.of_place(row), f"no `{key}`; add it"
        if (first := self.claim(given, row)) is None:
            return given, None
        repeated = f"`{key}` {shown(given)} is used twice, first in {first}"
        return self.of_place(row), f"{repeated}; give this row another or delete it"

    def of_row(self, row: Row, key: str | None, *content: Any) -> GivenId:
        """The id under `key`, or one made from `content`, the file's values before any cleaning;
        and why the row is bad input, or None. `key` is None where the format has no ids."""
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
    except RecursionError:  # of a JSON list, whose rows may be nested to any depth
        text = "nested too deeply"
    return hashlib.sha256(text.encode()).hexdigest()
