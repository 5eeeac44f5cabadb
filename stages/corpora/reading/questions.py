"""Read a question from a row by the keys of its fields; and read files of questions, one per row,
for formats that keep questions apart from texts.

A question file has the columns document_id and question. Optional are question_id, options,
answer_index (from 0, or a letter), references (a list or one string), question_type, asked_at,
evidence (spans of the document's text as loaded, `{"start_char": 0, "end_char": 9}` or `[0, 9]`)
and metadata (an object or JSON text). Other columns are kept in metadata. Null counts as absent.
Missing ids are made from document_id, question and options. In CSV, options are separated by `|`,
and options, references and evidence may be JSON.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pipeline.core.errors import UsageError
from pipeline.core.registry import nearest
from pipeline.core.rows import Document, Question, Span
from stages.corpora.reading.corpus import Loaded, bad_document
from stages.corpora.reading.corpus_row import (
    BadInputError,
    GivenId,
    Ids,
    Row,
    Value,
    choice_of,
    json_text,
    label_of,
    labels_of,
    list_of,
    metadata_of,
    one_or_more,
    optional_text,
    question_of,
    shown,
    texts_of,
    whole_number,
)
from stages.text.words import merged

T = TypeVar("T")
SUMMARY = "Write a summary of the text."  # the question where a format has none
_COLUMNS = frozenset({
    "document_id", "question_id", "question", "options", "answer_index", "references",
    "question_type", "evidence", "asked_at", "metadata",
})  # fmt: skip


def single(text: str | None) -> tuple[str, ...]:
    return () if text is None else (text,)


def question_or_summary(value: Value, key: str, summarizes: bool) -> str:
    """The question under `key`; SUMMARY where it is blank and the task is to summarize."""
    is_blank = not (optional_text(value, key) or "").strip()
    return SUMMARY if summarizes and is_blank else question_of(value, key)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionLayout:
    """A reader of a row's question: each field by a key or a function, in this order; functions
    raise BadInputError.

    A key of `options` or `references` holds a list of strings. `right` gets the row and the number
    of options and returns the position of the right one, which is the reference where the row has
    no other. `metadata` names keys whose labels are kept. `more` returns other fields of Question.
    """

    question: str | Callable[[Value], str]
    question_id: str | None = None
    options: str | Callable[[Value], tuple[str, ...]] | None = None
    right: Callable[[Value, int], int | None] | None = None
    references: str | Callable[[Value], tuple[str, ...]] | None = None
    question_type: str | Callable[[Value], str | None] | None = None
    metadata: tuple[str, ...] | Callable[[Value], str] = ()
    evidence: Callable[[Value], tuple[Span, ...]] = lambda value: ()
    asked_at: str | None = None
    more: Callable[[Value], Mapping[str, Any]] = lambda value: {}

    def read(self, row: Row, document_id: str, given: GivenId) -> Question:
        """The question in a row, with its id of Ids; problem: bad_input."""
        question_id, wrong = given
        if wrong:
            return bad_question(row, document_id, question_id, wrong)
        value = row.value or {}
        try:
            options = _read(self.options, value, texts_of) or ()
            right = self.right(value, len(options)) if self.right else None
            question = _read(self.question, value, question_of) or ""
            references = _read(self.references, value, texts_of)
            keys = self.metadata
            return Question(
                document_id=document_id,
                question_id=question_id,
                question=question,
                options=options,
                references=references or single(None if right is None else options[right]),
                answer_index=right,
                question_type=_read(self.question_type, value, label_of),
                metadata=keys(value) if callable(keys) else json_text(labels_of(value, keys)),
                evidence=self.evidence(value),
                asked_at=_read(self.asked_at, value, optional_text),
                detail=row.note,
                **self.more(value),
            )
        except BadInputError as error:
            return bad_question(row, document_id, question_id, error)


def _read(
    where: str | Callable[[Value], T] | None, value: Value, of_key: Callable[[Value, str], T]
) -> T | None:
    if where is None:
        return None
    return of_key(value, where) if isinstance(where, str) else where(value)


def bad_question(
    row: Row, document_id: str, question_id: str, wrong: BadInputError | str
) -> Question:
    value = row.value or {}
    text = value.get("question", value.get("query"))
    return Question(
        document_id=document_id,
        question_id=question_id,
        question=text if isinstance(text, str) else "",
        problem="bad_input",
        detail=row.detail(wrong),
    )


class QuestionFile:
    """The rows of a question file, all in memory, by document_id. Raises UsageError where no row
    has a document_id or a question."""

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self._rows: dict[str | None, list[Row]] = {}
        self._ids = Ids()
        columns: dict[str, None] = {}
        for row in map(_with_lists, rows):
            file, value = row.file, row.value or {}
            columns |= dict.fromkeys(value)
            self._rows.setdefault(row.given_id("document_id"), []).append(row)
        others = [key for key in columns if key not in _COLUMNS]
        for key in ("document_id", "question"):  # misspelt, it would make every row bad
            if columns and key not in columns:
                near = f"rename {nearest(key, others, 1)} or add it" if others else "add it"
                raise UsageError(f"{file}: no row has a {key}; {near}")

    def take(self, document: Document, also: str | None = None) -> tuple[Question, ...]:
        """Remove and return the document's questions, in file order; without evidence where the
        document cannot be read. `also`: another name by which rows may refer to the document."""
        name = document.document_id
        rows = self._rows.pop(name, [])
        if also is not None:
            rows = sorted([*rows, *self._rows.pop(also, [])], key=lambda row: row.line)
        num_chars = None if document.problem else len(document.text)
        layout = QuestionLayout(
            question="question",
            options="options",
            right=lambda value, num_options: choice_of(value, "answer_index", 0, num_options),
            references=lambda value: one_or_more(value, "references"),
            question_type=lambda value: optional_text(value, "question_type"),
            metadata=lambda value: metadata_of(value, _COLUMNS),
            evidence=lambda value: _evidence(value, num_chars),
            asked_at="asked_at",
        )
        return tuple(layout.read(row, name, self._id(row, name)) for row in rows)

    def take_rest(self, document_ids: Ids) -> Iterator[Loaded]:
        """Yield the questions that were not taken, all with problem `bad_input`: one Loaded per
        missing document, then one per row without a document_id."""
        without_id = self._rows.pop(None, [])
        for missing, rows in self._rows.items():
            is_taken = document_ids.claim(missing or "", rows[0])
            document_id = document_ids.of_place(rows[0]) if is_taken else missing or ""
            why = f"no document has the document_id {shown(missing)}; add it or delete the question"
            yield self._without_document(document_id, rows, why)
        for row in without_id:
            document_id, wrong = document_ids.of_given(row, "document_id")
            yield self._without_document(document_id, [row], wrong or "")

    def _without_document(self, document_id: str, rows: list[Row], wrong: str) -> Loaded:
        questions = tuple(
            bad_question(row, document_id, self._id(row, document_id)[0], wrong) for row in rows
        )
        missing = bad_document(document_id, rows[0].detail(wrong))
        return Loaded(missing, questions, is_named_only=True)

    def _id(self, row: Row, document_id: str) -> GivenId:
        value = row.value or {}
        content = (document_id, value.get("question"), value.get("options"))
        return self._ids.of_row(row, "question_id", *content)


def _with_lists(row: Row) -> Row:
    """The row, with JSON and lists parsed from its cells if it is from a CSV file."""
    if row.value is None or not {".csv", ".tsv"} & {*row.file.suffixes}:
        return row
    value = dict(row.value)
    for key in ("options", "references", "evidence"):
        cell = value.get(key)
        if not isinstance(cell, str):
            continue
        if cell.lstrip().startswith("["):
            with suppress(ValueError, RecursionError):
                value[key] = json.loads(cell)
        elif key == "options":
            value[key] = [option.strip() for option in cell.strip().removesuffix("|").split("|")]
    return replace(row, value=value)


def _evidence(value: Value, num_chars: int | None) -> tuple[Span, ...]:
    if num_chars is None or value.get("evidence") is None:
        return ()
    spans = []
    for span in list_of(value, "evidence"):
        ends = [span.get("start_char"), span.get("end_char")] if isinstance(span, dict) else span
        match [whole_number(end) for end in ends] if isinstance(ends, list) else []:
            case [int(start), int(end)] if 0 <= start < end <= num_chars:
                spans.append(Span(start, end))
            case _:
                raise BadInputError(
                    f"`evidence` {shown(span)} is no start and end of the document's characters "
                    f"(0 to {num_chars}); fix it"
                )
    return merged(spans)
