"""Read formats whose rows each hold a question and the whole document it is about.

Rows with the same text are one document, even where their document ids differ. The files are read
twice: first for the questions, which are kept in memory, then for the texts, which are not.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from pipeline.core.rows import Document, Question
from stages.corpora.reading.corpus import FileCorpus, Loaded, bad_document
from stages.corpora.reading.corpus_row import BadInputError, Ids, Row, Value, json_text, text_of
from stages.corpora.reading.questions import QuestionLayout


@dataclass(frozen=True, slots=True)
class Text:
    text: str
    title: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where a row has its document and its questions; functions raise BadInputError.

    `text`: a key, or a function. `entries`: returns each question's position in the row
    (`outputs[3]`, or "" for the row itself) and its values; None: the row is one question, without
    its text and the keys in `without`.
    """

    text: str | Callable[[Value], Text]
    asked: QuestionLayout
    makes_id: Sequence[str]  # keys of what a question without an id is known by
    document_id: str | None = None  # the key of the document's id; None: the format has none
    entries: Callable[[Value], Iterable[tuple[str, Value]]] | None = None
    without: Sequence[str] = ()
    joined: str | None = None  # key of lists to join over rows of equal id and question

    def text_of(self, row: Row) -> Text:
        if row.value is None:
            raise BadInputError(row.wrong)
        if isinstance(self.text, str):
            return Text(text_of(row.value, self.text))
        return self.text(row.value)

    def asked_in(self, row: Row) -> Iterator[Row]:
        """The row's questions; where they cannot be read, one row that holds the reason."""
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
    """Base of published formats with such rows; each declares its files and its layout."""

    layout: ClassVar[Layout]

    def load(self) -> Iterator[Loaded]:
        return load_grouped(self, self.layout)


@dataclass(slots=True)
class _Group:
    """The questions of the rows with one text."""

    first: int  # the number of the row whose text is used
    asked: list[Row] = field(default_factory=list)
    by_id: dict[tuple[str, Any], Value] = field(default_factory=dict)

    def add(self, layout: Layout, entry: Row) -> None:
        """Add the question, or its references to the same question from another row."""
        value = entry.value or {}
        given = entry.given_id(layout.asked.question_id or "")
        if layout.joined and given:
            first = self.by_id.setdefault((given, value.get("question")), value)
            if first is not value:
                first[layout.joined] += value[layout.joined]
                return
        self.asked.append(entry)


def load_grouped(corpus: FileCorpus, layout: Layout) -> Iterator[Loaded]:
    """Yield one Loaded per text, in the order of its first row, with the questions of all its rows.
    A row without a readable text is a bad_input document of its own; its questions are kept."""
    groups: dict[bytes | int, _Group] = {}
    for number, row in enumerate(corpus.rows()):
        try:
            key: bytes | int = hashlib.sha256(layout.text_of(row).text.encode()).digest()
        except BadInputError:
            key = number
        group = groups.setdefault(key, _Group(number))
        for entry in layout.asked_in(row):
            group.add(layout, entry)
    document_ids, question_ids = Ids(), Ids()
    by_first = {group.first: group for group in groups.values()}
    for number, row in enumerate(corpus.rows()):
        if number not in by_first:
            continue
        document = _document(corpus, layout, row, document_ids)
        questions: list[Question] = []
        for entry in by_first.pop(number).asked:
            content = [(entry.value or {}).get(key) for key in layout.makes_id]
            id_key = layout.asked.question_id
            given = question_ids.of_row(entry, id_key, document.document_id, content)
            questions.append(layout.asked.read(entry, document.document_id, given))
        yield Loaded(document, tuple(questions))


def _document(corpus: FileCorpus, layout: Layout, row: Row, ids: Ids) -> Document:
    document_id: str | None = None
    try:
        whole = layout.text_of(row)
        document_id, wrong = ids.of_row(row, layout.document_id, whole.text)
        if wrong:
            raise BadInputError(wrong)
        metadata = json_text(whole.metadata)
        document = corpus.document(document_id, whole.text, whole.title, metadata)
        return replace(document, detail=row.note)
    except BadInputError as error:
        # Without a text not the id in the row: a later row may have a readable text under it.
        return bad_document(document_id or ids.of_place(row), row.detail(error))
