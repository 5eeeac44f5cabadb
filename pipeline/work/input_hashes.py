"""Hashes of documents and questions, which name units: of the fields that stages use alone."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from pipeline.core.rows import Document, Question, Span
from pipeline.core.settings import canonical_json, sha, sha_of_json
from pipeline.work.steps import Step

Fields = tuple[str, ...] | None
"""Names of the record fields that a stage is given; None stands for all."""
_STATE = ("problem", "skipped", "detail")  # every stage is given these, too
# Columns that earlier versions did not have: not hashed at their defaults, so that committed
# questions are found again.
_ADDED = {"original_question": None, "original_references": None, "skipped": False}
_FIELDS = {
    kind: sorted(field.name for field in dataclasses.fields(kind)) for kind in (Document, Question)
}
_LONG = 1_000  # characters; a longer value is hashed once, for all sets of fields


@dataclass(frozen=True, slots=True)
class QuestionKey:
    """The hashes of one question that name units, one for each set of fields in use."""

    question_id: str
    shas: Mapping[Fields, str]
    is_bad: bool


@dataclass(frozen=True, slots=True)
class DocumentKey:
    """The hashes of one document and its questions that name units; the driver keeps nothing else
    of it."""

    document_id: str
    shas: Mapping[Fields, str]
    num_words: int
    is_bad: bool
    questions: tuple[QuestionKey, ...]

    @classmethod
    def of(
        cls, document: Document, questions: Iterable[Question], steps: Sequence[Step]
    ) -> "DocumentKey":
        """The key for `steps`, whose stages name the fields they use."""
        of_question = dict.fromkeys(step.question_fields for step in steps if step.per_question)
        of_document = dict.fromkeys(step.document_fields for step in steps)
        return cls(
            document.document_id,
            _shas(document, of_document),
            document.num_words,
            document.problem is not None or document.skipped,
            tuple(
                QuestionKey(
                    question.question_id,
                    _shas(question, of_question),
                    question.problem is not None or question.skipped,
                )
                for question in questions
            ),
        )


def _shas(row: Document | Question, sets: Iterable[Fields]) -> dict[Fields, str]:
    """For each set of fields, a hash of the row's ids, its problem and those fields."""
    ids = json_text((row.document_id, getattr(row, "question_id", None)))
    state = tuple(name for name in _STATE if getattr(row, name, None))
    names = _FIELDS[type(row)]
    added = _ADDED if isinstance(row, Question) else {}
    values = {name: getattr(row, name) for name in names}
    own = {name: f'"{name}":{_json_of_field(value)}' for name, value in values.items()
           if name not in added or value != added[name]}  # fmt: skip
    found = {}
    for fields in sets:
        chosen = names if fields is None else _in_order(fields, state)
        used = ",".join([own[name] for name in chosen if name in own])
        found[fields] = sha_of_json(f"[{ids},{{{used}}}]", 32)
    return found


@cache
def _in_order(fields: tuple[str, ...], state: tuple[str, ...]) -> list[str]:
    return sorted({*fields, *state})


def _json_of_field(value: Any) -> str:
    """The canonical JSON of a field as it is hashed; a long text is replaced by its hash."""
    if value is None:
        return "null"
    return json_text(sha(value) if isinstance(value, str) and len(value) > _LONG else value)


def json_text(value: Any) -> str:
    """`canonical_json`, faster for values that are neither a text nor a dict."""
    if isinstance(value, str) or value is None:
        return canonical_json(value)
    if isinstance(value, tuple):
        return f"[{','.join(map(json_text, value))}]"
    if isinstance(value, int):
        return repr(value).lower()  # a bool is an int
    if isinstance(value, Span):
        return f'{{"end_char":{value.end_char},"start_char":{value.start_char}}}'
    return canonical_json(value)


def mask_fields(row: Any, fields: tuple[str, ...]) -> Any:
    """The row as a stage is given it: ids, problem and `fields`. Other fields are at their
    defaults, so that a stage cannot use a field that is not hashed."""
    keep = {"document_id", "question_id", *_STATE, *fields}
    names = (field.name for field in dataclasses.fields(row))
    return type(row)(**{name: getattr(row, name) for name in names if name in keep})
