"""Read questions: from rows that each hold a question and the whole document it is about, and from
files of questions, for formats that keep questions apart from texts.

Rows with the same text are one document, even where their document ids differ. Their files are
read twice: first for the questions, which stay in memory, then for the texts.

A question file has one question per row, in the columns document_id and question. Optional are
question_id, options, answer_index (from 0, or a letter), references (a list or one string),
question_type, asked_at, evidence (spans of the document's text as loaded, `{"start_char": 0,
"end_char": 9}` or `[0, 9]`) and metadata (an object or JSON text). Other columns are kept in
metadata. Null counts as absent. Missing ids are made from document_id, question and options. In
CSV, options are separated by `|`, and options, references and evidence may be JSON.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeVar

from pipeline.core.errors import UsageError
from pipeline.core.rows import Document, Question, Span
from stages.corpora.reading import values
from stages.corpora.reading.corpus import FileCorpus, Loaded, bad_document, document_or_bad
from stages.corpora.reading.values import BadInputError, GivenId, Ids, Row, Value
from stages.text.words import merged

T = TypeVar("T")
_COLUMNS = frozenset({
    "document_id", "question_id", "question", "options", "answer_index", "references",
    "question_type", "evidence", "asked_at", "metadata",
})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionLayout:
    """Where a row has its question. Each field is a key of the row, or a function of the row, which
    may raise BadInputError. `right` gets the row and the number of options and returns the position
    of the right option, which is the reference where the row has no other. `metadata` names keys
    whose labels are kept. `more` returns further fields of Question."""

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
        """The question in a row. `given`: its id, from Ids. Problem: bad_input."""
        question_id, wrong = given
        if wrong:
            return bad_question(row, document_id, question_id, wrong)
        value = row.value or {}
        try:
            options = _read(self.options, value, values.texts_of) or ()
            right = self.right(value, len(options)) if self.right else None
            question = _read(self.question, value, values.question_of) or ""
            references = _read(self.references, value, values.texts_of)
            if callable(self.metadata):
                metadata = self.metadata(value)
            else:
                metadata = values.json_text(values.labels_of(value, self.metadata))
            return Question(
                document_id=document_id,
                question_id=question_id,
                question=question,
                options=options,
                references=references or (() if right is None else (options[right],)),
                answer_index=right,
                question_type=_read(self.question_type, value, values.label_of),
                metadata=metadata,
                evidence=self.evidence(value),
                asked_at=_read(self.asked_at, value, values.optional_text),
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
    """A row for a question that cannot be used, with its text where it has one."""
    value = row.value or {}
    text = value.get("question", value.get("query"))
    return Question(
        document_id=document_id,
        question_id=question_id,
        question=text if isinstance(text, str) else "",
        problem="bad_input",
        detail=row.detail(wrong),
    )


@dataclass(frozen=True, slots=True)
class Text:
    """The text of a document in a row, and what is known of it."""

    text: str
    title: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where a row has its document and its questions; functions may raise BadInputError. `text`: a
    key, or a function of the row. `entries` returns the place of each question in the row
    (`outputs[3]`, or "" for the row itself) and the question's values. Where it is None, the row is
    one question, without its text and the keys in `without`."""

    text: str | Callable[[Value], Text]
    asked: QuestionLayout
    makes_id: Sequence[str]  # keys whose values make the id of a question that has none
    document_id: str | None = None  # the key of the document's id; None: the format has none
    entries: Callable[[Value], Iterable[tuple[str, Value]]] | None = None
    without: Sequence[str] = ()
    joined: str | None = None  # the key of lists to join over rows of equal id and question

    def text_of(self, row: Row) -> Text:
        if row.value is None:
            raise BadInputError(row.wrong)
        if isinstance(self.text, str):
            return Text(values.text_of(row.value, self.text))
        return self.text(row.value)

    def asked_in(self, row: Row) -> Iterator[Row]:
        """Yield the row's questions; where they cannot be read, one row that says why."""
        value = row.value
        if value is None:
            return
        whole = [("", {key: value[key] for key in value if key not in (self.text, *self.without)})]
        try:
            for inside, entry in self.entries(value) if self.entries else whole:
                yield replace(row, value=entry, inside=inside)
        except BadInputError as wrong:
            yield replace(row, value=None, wrong=str(wrong))


class RowsCorpus(FileCorpus):
    """Base class of formats whose rows each have a text and its questions, where `layout` says."""

    layout: ClassVar[Layout]

    def load(self) -> Iterator[Loaded]:
        return load_grouped(self, self.layout)


def load_grouped(corpus: FileCorpus, layout: Layout) -> Iterator[Loaded]:
    """Yield one Loaded per text, in the order of its first row, with the questions of all its rows.
    A row without a readable text is a bad_input document that keeps its questions."""
    firsts: dict[bytes, int] = {}  # by the hash of a text, the number of the first row that has it
    entries_of: dict[int, list[Row]] = {}  # by that number, the questions of all rows with the text
    joined: dict[tuple[int, str, Any], Value] = {}
    for number, row in enumerate(corpus.rows()):
        first = number
        with suppress(BadInputError):
            text_sha = hashlib.sha256(layout.text_of(row).text.encode()).digest()
            first = firsts.setdefault(text_sha, number)
        entries = entries_of.setdefault(first, [])
        for entry in layout.asked_in(row):
            value, given = entry.value or {}, entry.given_id(layout.asked.question_id or "")
            if layout.joined and given:
                earlier = joined.setdefault((first, given, value.get("question")), value)
                if earlier is not value:
                    earlier[layout.joined] += value[layout.joined]
                    continue
            entries.append(entry)
    document_ids, question_ids = Ids(), Ids()
    for number, row in enumerate(corpus.rows()):
        if number not in entries_of:
            continue
        document = _document(corpus, layout, row, document_ids)
        questions: list[Question] = []
        for entry in entries_of.pop(number):
            content = [(entry.value or {}).get(key) for key in layout.makes_id]
            id_key = layout.asked.question_id
            given_id = question_ids.of_row(entry, id_key, document.document_id, content)
            questions.append(layout.asked.read(entry, document.document_id, given_id))
        yield Loaded(document, tuple(questions))


def _document(corpus: FileCorpus, layout: Layout, row: Row, ids: Ids) -> Document:
    try:
        whole = layout.text_of(row)
    except BadInputError as error:  # its id may be that of a later row with a readable text
        return bad_document(ids.of_place(row), row.detail(error))

    def make(value: Value, document_id: str) -> Document:
        metadata = values.json_text(whole.metadata)
        return corpus.document(document_id, whole.text, whole.title, metadata)

    return document_or_bad(row, ids.of_row(row, layout.document_id, whole.text), make)


class QuestionFile:
    """The rows of a question file, in memory, by document_id. Raises UsageError where no row has a
    document_id, or none has a question."""

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self._rows: dict[str | None, list[Row]] = {}
        self._ids = Ids()
        columns: dict[str, None] = {}
        for row in rows:
            if row.value and {".csv", ".tsv"} & {*row.file.suffixes}:
                row = replace(row, value=_with_lists(row.value))
            columns |= dict.fromkeys(row.value or {})
            self._rows.setdefault(row.given_id("document_id"), []).append(row)
        for key in ("document_id", "question"):  # misspelt, it would make every row bad
            if columns and key not in columns:
                raise UsageError(f"{row.file}: no row has a {key}; add it")

    def take(self, document: Document, also: str | None = None) -> tuple[Question, ...]:
        """Remove and return the document's questions, in file order; without evidence where the
        document cannot be read. `also`: another name by which rows may refer to it."""
        document_id = document.document_id
        rows = self._rows.pop(document_id, [])
        if also is not None:
            rows = sorted([*rows, *self._rows.pop(also, [])], key=lambda row: row.line)
        num_chars = None if document.problem else len(document.text)
        layout = QuestionLayout(
            question="question",
            options="options",
            right=lambda value, count: values.choice_of(value, "answer_index", 0, count),
            references=lambda value: values.one_or_more(value, "references"),
            question_type=lambda value: values.optional_text(value, "question_type"),
            metadata=lambda value: values.metadata_of(value, _COLUMNS),
            evidence=lambda value: _evidence(value, num_chars),
            asked_at="asked_at",
        )
        return tuple(layout.read(row, document_id, self._id(row, document_id)) for row in rows)

    def take_rest(self, document_ids: Ids) -> Iterator[Loaded]:
        """Yield the questions that were not taken, as `bad_input`: one Loaded per missing document,
        then one per row without a document_id."""
        without_id = self._rows.pop(None, [])
        groups = [*self._rows.items(), *((None, [row]) for row in without_id)]
        for missing, rows in groups:
            document_id, wrong = document_ids.of_given(rows[0], "document_id")
            if missing is not None:
                wrong = f"no document has the document_id {values.shown(missing)}"
                wrong += "; add it or delete the question"
            detail = wrong or ""
            questions = tuple(
                bad_question(row, document_id, self._id(row, document_id)[0], detail)
                for row in rows
            )
            document = bad_document(document_id, rows[0].detail(detail))
            yield Loaded(document, questions, is_named_only=True)

    def _id(self, row: Row, document_id: str) -> GivenId:
        value = row.value or {}
        content = (document_id, value.get("question"), value.get("options"))
        return self._ids.of_row(row, "question_id", *content)


def _with_lists(cells: Value) -> Value:
    """The cells of a row of a CSV file, with JSON and lists of options parsed."""
    value = dict(cells)
    for key in ("options", "references", "evidence"):
        cell = value.get(key)
        if isinstance(cell, str) and cell.lstrip().startswith("["):
            with suppress(ValueError, RecursionError):
                value[key] = json.loads(cell)
        elif isinstance(cell, str) and key == "options":
            value[key] = [option.strip() for option in cell.strip().removesuffix("|").split("|")]
    return value


def _evidence(value: Value, num_chars: int | None) -> tuple[Span, ...]:
    if num_chars is None or value.get("evidence") is None:
        return ()
    spans = []
    for span in values.list_of(value, "evidence"):
        ends = [span.get("start_char"), span.get("end_char")] if isinstance(span, dict) else span
        match [values.whole_number(end) for end in ends] if isinstance(ends, list) else []:
            case [int(start), int(end)] if 0 <= start < end <= num_chars:
                spans.append(Span(start, end))
            case _:
                legal = f"start and end of the document's characters (0 to {num_chars})"
                raise BadInputError(f"`evidence` {values.shown(span)} is no {legal}; fix it")
    return merged(spans)
