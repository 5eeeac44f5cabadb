"""One row of a corpus's file, and typed access to its values. None counts as absent; a value of the
wrong type raises BadInputError."""

import json
import math
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from string import ascii_uppercase
from typing import Any

from upath import UPath

from pipeline.core.errors import UsageError

_NUMBER = re.compile(r"[0-9]{1,9}(\.0*)?")


class BadInputError(Exception):
    """A row that cannot be used: the reason and what to do; the caller adds file and line."""


@dataclass(frozen=True, slots=True)
class Row:
    """A JSON object with its file and line. `value` is None if it is not an object, for the reason
    `wrong`. `note`: doubts about its encoding, after the file's name, and what to do."""

    file: UPath
    line: int  # from 1; in Parquet and JSON lists the number of the row
    value: dict[str, Any] | None
    wrong: str = ""
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
        """The row itself. Raises UsageError where it is no object, or its encoding is a guess."""
        if self.value is None or self.note:
            raise UsageError(self.note or self.detail(self.wrong))
        return self

    def detail(self, wrong: BadInputError | str) -> str:
        """`file:line: what is wrong; what to do`, the text for a bad row's `detail`."""
        within = f"{self.inside}: " if self.inside else ""
        return f"{name_of(self.file.name)}:{self.line}: {within}{wrong}"


def rows_within(row: Row, key: str) -> Iterator[Row]:
    """A Row per entry of the list under `key`; without a value for an entry that is no object, and
    one such Row for a `key` that is no list."""
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


def kind_of(value: Any) -> str:
    """The name of a JSON value's type, for messages."""
    kinds = {bool: "a boolean", int: "a number", float: "a number", str: "a string",
             list: "a list", dict: "an object", type(None): "null"}  # fmt: skip
    return kinds.get(type(value), type(value).__name__)


def shown(value: Any) -> str:
    """A value as JSON for messages, cut after 80 characters."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except RecursionError:
        return "(nested too deeply)"
    return text if len(text) <= 80 else f"{text[:80]}..."


def without_lone_surrogates(text: str) -> str:
    """Replace every lone surrogate by U+FFFD; UTF-8 cannot store one."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def without_nan(value: Any) -> Any:
    """The value with None in place of NaN, which pandas has for missing values and JSON lacks."""
    if isinstance(value, float):
        return None if math.isnan(value) else value
    if isinstance(value, dict):
        return {key: without_nan(one) for key, one in value.items()}
    return [*map(without_nan, value)] if isinstance(value, (list, tuple)) else value


def name_of(text: str) -> str:
    """An id or name as it is stored and compared: in Unicode's NFC, as file systems may return NFD,
    and without lone surrogates."""
    return unicodedata.normalize("NFC", without_lone_surrogates(text))


def text_of(row: dict[str, Any], key: str) -> str:
    text = optional_text(row, key)
    if text is None:
        raise BadInputError(f"no `{key}`; add it")
    return text


def optional_text(row: dict[str, Any], key: str) -> str | None:
    """The string under `key`, None where absent; a date from Parquet is returned in ISO format."""
    value = row.get(key)
    if isinstance(value, date):
        return value.isoformat()
    if value is None or isinstance(value, str):
        return value
    raise BadInputError(f"`{key}` is {kind_of(value)}, not a string; fix it")


def question_of(row: dict[str, Any], key: str) -> str:
    text = text_of(row, key)
    if not text.strip():
        raise BadInputError(f"`{key}` is empty; write the question or delete it")
    return text


def label_of(row: dict[str, Any], key: str) -> str | None:
    """The id or title under `key`, normalized by `name_of`, None where absent; a number is returned
    as its JSON text."""
    value = row.get(key)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return json.dumps(value)
    label = optional_text(row, key)
    return None if label is None else name_of(label)


def texts_of(row: dict[str, Any], key: str) -> tuple[str, ...]:
    value = row.get(key)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise BadInputError(f"`{key}` is not a list of strings; fix it")
    return tuple(value)


def one_or_more(row: dict[str, Any], key: str) -> tuple[str, ...]:
    """The texts under `key`, one or a list, empty where it is absent."""
    value = row.get(key)
    entries = value if isinstance(value, list) else [] if value is None else [value]
    texts = [_as_text(entry) for entry in entries]
    if None in texts:
        raise BadInputError(f"`{key}` is not a list of strings; fix it")
    return tuple(text for text in texts if text is not None)


def _as_text(value: Any) -> str | None:
    """A string or decimal as it is, a number or boolean as in JSON (4.0 as 4), a date in ISO
    format; None for anything else."""
    if isinstance(value, (str, Decimal)):
        return str(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, (bool, int, float)):
        number = whole_number(value)
        return json.dumps(value if number is None else number)
    return None


def list_of(row: dict[str, Any], key: str) -> list[Any]:
    value = row.get(key)
    if not isinstance(value, list):
        raise BadInputError(f"`{key}` is {kind_of(value)}, not a list; fix it")
    return value


def present(row: dict[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    return {key: value for key in keys if (value := row.get(key)) is not None}


def whole_number(value: Any) -> int | None:
    """An int, or a float without a fraction (pandas writes a column with gaps so); else None."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def index_of(row: dict[str, Any], key: str, first: int, num_options: int) -> int | None:
    """The option's position from 0, None where absent; the file numbers options from `first`."""
    value = row.get(key)
    if value is None:
        return None
    number = whole_number(value)
    if number is None or not first <= number < first + num_options:
        last = first + num_options - 1
        legal = f"a number from {first} to {last}" if num_options else "possible without options"
        raise BadInputError(f"`{key}` {shown(value)} is not {legal}; fix it")
    return number - first


def letter_of(row: dict[str, Any], key: str, num_options: int) -> int | None:
    """The option's position from 0, None where absent; the file names options by letter."""
    value = optional_text(row, key)
    if value is None:
        return None
    letters = ascii_uppercase[:num_options]
    letter = value.strip().upper()
    if len(letter) != 1 or letter not in letters:
        raise BadInputError(f"`{key}` {shown(value)} is no letter of {letters}; fix it")
    return letters.index(letter)


def choice_of(row: dict[str, Any], key: str, first: int, num_options: int) -> int | None:
    """The option's position from 0, None where absent, by its number or its letter. A number may be
    text, as in CSV."""
    value = row.get(key)
    if isinstance(value, str) and num_options:
        if _NUMBER.fullmatch(value.strip()):
            return index_of({key: int(float(value))}, key, first, num_options)
        if not value.strip().isdecimal():
            return letter_of(row, key, num_options)
    return index_of(row, key, first, num_options)


def json_object(row: dict[str, Any], key: str) -> dict[str, Any]:
    """The object under `key`, which may be JSON text; empty where absent."""
    value = row.get(key)
    if value is None:
        return {}
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            value = None
    if not isinstance(value, dict):
        raise BadInputError(f"`{key}` is no JSON object; fix it")
    return value


def json_text(values: dict[str, Any]) -> str:
    try:
        text = json.dumps(values, ensure_ascii=False, allow_nan=False, default=str)
    except (ValueError, TypeError, RecursionError) as error:
        raise BadInputError(f"metadata cannot be written as JSON ({error}); fix it") from error
    return without_lone_surrogates(text)


def metadata_of(row: dict[str, Any], known: Collection[str]) -> str:
    """The row's `metadata` and all columns that are not `known`, as one JSON text."""
    others = present(row, (key for key in row if key not in known))
    return json_text({**others, **json_object(row, "metadata")})
