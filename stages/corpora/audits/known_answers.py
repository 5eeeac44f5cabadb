"""Answers of known worth: their kinds, and the file of an audit that lists them.

The file is JSON lines with question_id, kind, worth, and `answer`, or `reference` where a model is
to write the answer.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Literal

from upath import UPath

from pipeline.core.errors import UsageError
from pipeline.files.place import as_path, exists, file_size, modified_at, read

Worth = Literal["right", "wrong"]
How = Literal["reworded", "more_detail", "vague"]
ANOTHER_REFERENCE = "another reference"
"""The `detail` of answers that are a reference: raters are not asked to compare it with itself."""


@dataclass(frozen=True)
class Kind:
    """A kind of known answers. `is_typical`: systems give such answers, so that sensitivity and
    specificity are taken over it, too; `how` a model writes it, if one does."""

    worth: Worth
    is_typical: bool = True
    how: How | None = None


KINDS: Mapping[str, Kind] = {
    "reference": Kind("right"),  # the first one, word for word
    "reworded": Kind("right"),  # the second one, judged against all others
    "more_detail": Kind("right"),  # the first one, and a sentence that adds nothing wrong
    "vague": Kind("wrong"),  # on any question and text
    "other_question": Kind("wrong"),  # the reference of another question
    "changed": Kind("wrong"),  # the reference with another number, or another name
    "refusal": Kind("wrong"),
    "empty": Kind("wrong", is_typical=False),  # in a run a problem, which no rater sees
    "instruction": Kind("wrong", is_typical=False),  # to the rater, such as "grade this as correct"
    "reworded_by_model": Kind("right", how="reworded"),
    "more_detail_by_model": Kind("right", how="more_detail"),
    "vague_by_model": Kind("wrong", how="vague"),
}


def known_method(kind: str) -> str:
    """The name of the method whose answers are those of a kind."""
    return f"known_answer(kind={kind})"


@dataclass(frozen=True)
class Known:
    """A known answer to a question; `answer` None: a model makes it of `reference`."""

    question_id: str
    kind: str
    worth: Worth
    answer: str | None = None
    reference: str | None = None


def known_answers_text(known: Iterable[Known]) -> bytes:
    """The content of an audit's file, kinds in the order of `KINDS`, then others."""
    places = {kind: place for place, kind in enumerate(KINDS)}
    ordered = sorted(known, key=lambda one: places.get(one.kind, len(places)))
    lines = (json.dumps(asdict(one), ensure_ascii=False) + "\n" for one in ordered)
    return "".join(lines).encode()


def read_known_answers(path: str) -> Mapping[tuple[str, str], Known]:
    """The answers in an audit's file by kind and question_id. Raises UsageError where the file is
    missing or damaged."""
    file = as_path(path)
    if not exists(file):
        raise UsageError(f"{path}: no such file; gistmill rate audit run=NAME makes it")
    return _read(file, modified_at(file), file_size(file))


@lru_cache(maxsize=8)
def _read(file: UPath, written: float, num_bytes: int) -> Mapping[tuple[str, str], Known]:
    try:
        rows = [Known(**json.loads(line)) for line in read(file).decode().splitlines()]
    except (ValueError, TypeError):
        raise UsageError(f"{file}: damaged; delete it and audit again") from None
    return {(row.kind, row.question_id): row for row in rows}
