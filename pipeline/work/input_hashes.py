"""Hashes of documents and questions, which name units: of the fields that stages use alone."""

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from typing import Any

from pipeline.core.rows import Document, Question, Span
from pipeline.core.settings import sha, sha_of_json
from pipeline.work.steps import Step

Fields = tuple[str, ...] | None
"""Names of the record fields that a stage is given; None stands for all."""
_STATE = ("problem", "skipped", "detail")  # every stage is given these, too
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
    of it. `is_named_only`: questions name it, and the corpus does not have it."""

    document_id: str
    shas: Mapping[Fields, str]
    num_words: int
    is_bad: bool
    questions: tuple[QuestionKey, ...]
    is_named_only: bool = False

    @classmethod
    def of(
        cls,
        document: Document,
        questions: Iterable[Question],
        steps: Sequence[Step],
        is_named_only: bool = False,
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
                    question.problem is not None,
                )
                for question in questions
            ),
            is_named_only,
        )


def _shas(row: Document | Question, sets: Iterable[Fields]) -> dict[Fields, str]:
    """For each set of fields, a hash of the row's ids, its problem and those fields."""
    ids = _encoded((row.document_id, getattr(row, "question_id", None)))
    own = _encoded_fields(row)
    state = tuple(name for name in _STATE if getattr(row, name, None))
    found = {}
    for fields in sets:
        chosen = own if fields is None else _chosen(fields, state)
        used = ",".join(own[name] for name in chosen if name in own)
        found[fields] = sha_of_json(f"[{ids},{{{used}}}]", 32)
    return found


def _encoded_fields(row: Document | Question) -> dict[str, str]:
    """The fields that are hashed, by name, each as it stands in canonical JSON."""
    found = {}
    for name, default, encoded in _FIELDS[type(row)]:
        value = getattr(row, name)
        found[name] = encoded if value is default else f'"{name}":{_encoded(value)}'
    return found


def _fields(kind: type[Any]) -> list[tuple[str, Any, str]]:
    """The fields of a class in order, each with its default and how that is hashed, as most fields
    of most rows are at theirs."""
    defaults = {field.name: None if field.default is dataclasses.MISSING else field.default
                for field in dataclasses.fields(kind)}  # fmt: skip
    return [(name, default, f'"{name}":{_encoded(default)}')
            for name, default in sorted(defaults.items())]  # fmt: skip


@cache
def _chosen(fields: tuple[str, ...], state: tuple[str, ...]) -> list[str]:
    return sorted({*fields, *state})


def _encoded(value: Any) -> str:
    """A field's value as it is hashed: a long text is replaced by its hash."""
    is_long = isinstance(value, str) and len(value) > _LONG
    return _ROW.encode(sha(value) if is_long else value)


def _of_span(span: Span) -> dict[str, int]:
    return {"end_char": span.end_char, "start_char": span.start_char}


# As `canonical_json`, with spans.
_ROW = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=_of_span)
_FIELDS = {kind: _fields(kind) for kind in (Document, Question)}
_ALL = {kind: attrgetter(*(name for name, _, _ in own)) for kind, own in _FIELDS.items()}


def rows_sha(document: Document, questions: Iterable[Question], is_named_only: bool) -> str:
    """A hash of every field of a document and of its questions, in order; takes a third of the time
    of their key."""
    of_questions = [_ALL[Question](question) for question in questions]
    return sha_of_json(_ROW.encode([_ALL[Document](document), of_questions, is_named_only]), 32)


def mask_fields(row: Any, fields: tuple[str, ...]) -> Any:
    """The row as a stage is given it: ids, problem and `fields`. Other fields are at their
    defaults, so that a stage cannot use a field that is not hashed."""
    keep = {"document_id", "question_id", *_STATE, *fields}
    names = (field.name for field in dataclasses.fields(row))
    return type(row)(**{name: getattr(row, name) for name in names if name in keep})
