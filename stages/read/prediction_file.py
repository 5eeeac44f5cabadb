"""Read the answers of another system from a file: text by question_id.

JSON lines, a JSON list, CSV or Parquet of rows with `question_id` and one of `answer`, `hypothesis`
(LongMemEval's) and `prediction`; or one JSON object of answers by id, as SCROLLS has it.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, islice
from typing import Any

from upath import UPath

from pipeline.core.errors import UsageError
from pipeline.files.place import as_path, exists, file_size, modified_at, refuse_unreachable_path
from stages.corpora.reading.corpus_row import BadInputError, Row, label_of, without_lone_surrogates
from stages.corpora.reading.files import NotTextError, opened, read_rows

_ID = "question_id"
_ANSWERS = ("answer", "hypothesis", "prediction")
_FIX = "write one row for each question"


def read_predictions(path: str) -> Mapping[str, Any]:
    """The answers in a file, by question_id: text, or whatever JSON value stands in its place.

    A file that has not changed is read once in a process. Raises UsageError, naming file and line,
    where the file cannot be read, a row has no id or no answer, or two rows have the same id.
    """
    file = as_path(path)
    with refuse_unreachable_path(file, "predictions"):
        if not exists(file):
            raise UsageError(f"predictions={path}: no such file; name one with answers")
        return _read(file, modified_at(file), file_size(file))


@lru_cache(maxsize=8)
def _read(file: UPath, written: float, num_bytes: int) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    lines: dict[str, int] = {}
    for row in _rows(file):
        question_id, answer = _answer(row)
        if question_id in lines:
            raise UsageError(
                f"{row.detail(f'`{_ID}` {question_id!r} is used twice')}, first in line "
                f"{lines[question_id]}; {_FIX}"
            )
        lines[question_id] = row.line
        found[question_id] = without_lone_surrogates(answer) if isinstance(answer, str) else answer
    if not found:
        raise UsageError(f"predictions={file}: holds no answer; {_FIX}")
    return found


def _rows(file: UPath) -> Iterator[Row]:
    """The rows of the file; where it is one JSON object of answers by id, they are made."""
    rows = read_rows(file, "name a file with answers")
    first = list(islice(rows, 2))
    if len(first) == 1 and _is_by_id(first[0].value) and (pairs := _pairs(file)) is not None:
        for question_id, answer in pairs:
            yield Row(file, 1, {_ID: question_id, _ANSWERS[0]: answer})
        return
    for row in chain(first, rows):
        yield row.sure()


def _is_by_id(value: Mapping[str, Any] | None) -> bool:
    return value is not None and not {_ID, *_ANSWERS} & value.keys()


class _Pairs(list[tuple[str, Any]]):
    """The entries of a JSON object, those of a repeated key, too."""


def _pairs(file: UPath) -> Sequence[tuple[str, Any]] | None:
    """The entries of the one object that a file is; None where it is a list, CSV or Parquet."""
    try:
        with opened(file) as content:
            found = json.loads(content.read(), object_pairs_hook=_Pairs)
    except (ValueError, NotTextError):
        return None
    if not isinstance(found, _Pairs):
        return None
    return [(without_lone_surrogates(key), value) for key, value in found]


def _answer(row: Row) -> tuple[str, Any]:
    value = row.value or {}
    try:
        question_id = label_of(value, _ID)
    except BadInputError as wrong:
        raise UsageError(row.detail(wrong)) from None
    if not question_id:
        there = ", ".join(map(str, value)) or "nothing"
        raise UsageError(row.detail(f"no `{_ID}`, the row has {there}; {_FIX}"))
    keys = [key for key in _ANSWERS if key in value]
    if len(keys) != 1:
        which = " and ".join(keys) or "none"
        raise UsageError(row.detail(f"one of {', '.join(_ANSWERS)} is needed, there is {which}"))
    return question_id, value[keys[0]]
