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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pipeline.core.errors import UsageError
from pipeline.core.registry import nearest
from pipeline.core.rows import Document, Question, Span
from stages.corpora.reading.corpus import Loaded, bad_document, bad_question
from stages.corpora.reading.corpus_row import (
    BadInputError,
    Row,
    choice_of,
    json_text,
    label_of,
    list_of,
    metadata_of,
    one_or_more,
    optional_text,
    question_of,
    shown,
    texts_of,
    whole_number,
)
from stages.corpora.reading.ids import Ids
from stages.text.words import merged

T = TypeVar("T")
Value = dict[str, Any]
SUMMARY = "Write a summary of the text."  # the question where a format has none


def single(text: str | None) -> tuple[str, ...]:
    return () if text is None else (text,)


def about(value: Value, *keys: str) -> dict[str, Any]:
    """The labels under these keys that are neither absent nor empty."""
    return {key: label for key in keys if (label := label_of(value, key))}


def question_or_summary(value: Value, key: str, summarizes: bool) -> str:
    """The question under `key`; SUMMARY where it is blank and the task is to summarize."""
    is_blank = not (optional_text(value, key) or "").strip()
    return SUMMARY if summarizes and is_blank else question_of(value, key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
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

    def read(self, row: Row, document_id: str, found: tuple[str, str | None]) -> Question:
        """The question in a row; problem: bad_input.

        `found`: its id and why it is bad input, as Ids returns them.
        """
        question_id, wrong = found
        try:
            if wrong:
                raise BadInputError(wrong)
            question = self._question(row.value or {}, document_id, question_id)
            return replace(question, detail=row.note)
        except BadInputError as error:
            return bad_question(row, document_id, question_id, error)

    def _question(self, value: Value, document_id: str, question_id: str) -> Question:
        options = _read(self.options, value, texts_of) or ()
        right = self.right(value, len(options)) if self.right else None
        question = _read(self.question, value, question_of) or ""
        answers = _read(self.references, value, texts_of)
        known = self.metadata
        fields = {
            "question_type": _read(self.question_type, value, label_of),
            "metadata": known(value) if callable(known) else json_text(about(value, *known)),
            "evidence": self.evidence(value),
            "asked_at": _read(self.asked_at, value, optional_text),
            **self.more(value),
        }
        return Question(
            document_id=document_id,
            question_id=question_id,
            question=question,
            options=options,
            references=answers or single(None if right is None else options[right]),
            answer_index=right,
            **fields,
        )


def _read(
    where: str | Callable[[Value], T] | None, value: Value, of_key: Callable[[Value, str], T]
) -> T | None:
    if where is None:
        return None
    return of_key(value, where) if isinstance(where, str) else where(value)


_COLUMNS = frozenset(
    {
        *("document_id", "question_id", "question", "options", "answer_index", "references"),
        *("question_type", "evidence", "asked_at", "metadata"),
    }
)


class QuestionFile:
    """The rows of a question file, all in memory, by document_id. Raises UsageError where no row
    has a document_id or a question."""

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self._rows: dict[str, list[Row]] = {}
        self._without_id: list[Row] = []
        self._ids = Ids()
        found = [_of_cells(row) for row in rows]
        _refuse_unnamed(found)
        for row in found:
            document_id = row.given_id("document_id")
            if document_id is None:
                self._without_id.append(row)
            else:
                self._rows.setdefault(document_id, []).append(row)

    def take(self, document: Document, also: str | None = None) -> tuple[Question, ...]:
        """Remove and return the document's questions, in file order; without evidence where the
        document cannot be read. `also`: another name by which rows may refer to the document."""
        name = document.document_id
        rows = self._rows.pop(name, [])
        if also is not None:
            rows = sorted([*rows, *self._rows.pop(also, [])], key=lambda row: row.line)
        asked = _asked(None if document.problem else len(document.text))
        return tuple(asked.read(row, name, self._id(row, name)) for row in rows)

    def take_rest(self, document_ids: Ids) -> Iterator[Loaded]:
        """Yield the questions that were not taken, all with problem `bad_input`: one Loaded per
        missing document, then one per row without a document_id."""
        for missing, rows in self._rows.items():
            is_taken = document_ids.claim(missing, rows[0])
            document_id = document_ids.of_place(rows[0]) if is_taken else missing
            why = f"no document has the document_id {shown(missing)}; add it or delete the question"
            yield self._without_document(document_id, rows, why)
        for row in self._without_id:
            document_id, wrong = document_ids.of_given(row, "document_id")
            yield self._without_document(document_id, [row], wrong or "")

    def _without_document(self, document_id: str, rows: list[Row], wrong: str) -> Loaded:
        questions = tuple(
            bad_question(row, document_id, self._id(row, document_id)[0], wrong) for row in rows
        )
        missing = bad_document(document_id, rows[0].detail(wrong))
        return Loaded(missing, questions, is_named_only=True)

    def _id(self, row: Row, document_id: str) -> tuple[str, str | None]:
        value = row.value or {}
        content = (document_id, value.get("question"), value.get("options"))
        return self._ids.of_row(row, "question_id", *content)


def _refuse_unnamed(rows: Sequence[Row]) -> None:
    """Report a misspelt column once; it would make every row bad."""
    columns = dict.fromkeys(key for row in rows for key in row.value or {})
    others = [key for key in columns if key not in _COLUMNS]
    for key in ("document_id", "question"):
        if columns and key not in columns:
            near = f"rename {nearest(key, others, 1)} or add it" if others else "add it"
            raise UsageError(f"{rows[0].file}: no row has a {key}; {near}")


def _of_cells(row: Row) -> Row:
    """The row, with JSON and lists parsed from its cells if it is from a CSV file."""
    if row.value is None or not {".csv", ".tsv"} & {*row.file.suffixes}:
        return row
    value = {key: _of_cell(key, cell) for key, cell in row.value.items()}
    return replace(row, value=value)


def _of_cell(key: str, cell: Any) -> Any:
    if not isinstance(cell, str):
        return cell
    if key in ("options", "references", "evidence") and cell.lstrip().startswith("["):
        try:
            return json.loads(cell)
        except (ValueError, RecursionError):
            return cell
    if key == "options":
        return [option.strip() for option in cell.strip().removesuffix("|").split("|")]
    return cell


def _asked(num_chars: int | None) -> Asked:
    """`num_chars`: the length of the document's text; None where it cannot be read."""
    return Asked(
        question="question",
        options="options",
        right=lambda value, num_options: choice_of(value, "answer_index", 0, num_options),
        references=lambda value: one_or_more(value, "references"),
        question_type=lambda value: optional_text(value, "question_type"),
        metadata=lambda value: metadata_of(value, _COLUMNS),
        evidence=lambda value: _evidence(value, num_chars),
        asked_at="asked_at",
    )


def _evidence(value: dict[str, Any], num_chars: int | None) -> tuple[Span, ...]:
    if num_chars is None or value.get("evidence") is None:
        return ()
    return merged(_span(span, num_chars) for span in list_of(value, "evidence"))


def _span(span: Any, num_chars: int) -> Span:
    ends = [span.get("start_char"), span.get("end_char")] if isinstance(span, dict) else span
    numbers = [whole_number(end) for end in ends] if isinstance(ends, list) else []
    match numbers:
        case [int(start), int(end)] if 0 <= start < end <= num_chars:
            return Span(start, end)
    raise BadInputError(
        f"`evidence` {shown(span)} is no start and end of the document's characters "
        f"(0 to {num_chars}); fix it"
    )
