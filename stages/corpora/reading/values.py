"""Typed access to the values of a corpus's row. None counts as absent; a value of the wrong type
raises BadInputError."""

import json
import math
import re
import unicodedata
from collections.abc import Collection, Iterable
from contextlib import suppress
from datetime import date
from decimal import Decimal
from string import ascii_uppercase
from typing import Any

Value = dict[str, Any]
_KINDS = {bool: "a boolean", int: "a number", float: "a number", str: "a string",
          list: "a list", dict: "an object", type(None): "null"}  # fmt: skip
_NUMBER = re.compile(r"[0-9]{1,9}(\.0*)?")


class BadInputError(Exception):
    """A row that cannot be used: the reason and what to do; the caller adds file and line."""


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
    """U+FFFD for every lone surrogate, which UTF-8 cannot store."""
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
    """The id or title under `key`, None where absent; of a number its JSON text."""
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
    """The texts under `key`, one or a list: numbers and booleans as in JSON (4.0 as 4), dates in
    ISO format."""
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


def present(row: Value, keys: Iterable[str]) -> Value:
    return {key: value for key in keys if (value := row.get(key)) is not None}


def whole_number(value: Any) -> int | None:
    """An int, or a float without a fraction (pandas writes a column with gaps so); else None."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def choice_of(row: Value, key: str, first: int | None, num_options: int) -> int | None:
    """The option's position from 0, None where absent, by its letter or its number, which may be
    text. The file numbers options from `first`; None: only letters name them."""
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
    """The row's `metadata` and all that is not in these columns, as one JSON text."""
    others = present(row, (key for key in row if key not in columns))
    return json_text({**others, **json_object(row, "metadata")})
