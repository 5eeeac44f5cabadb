"""Read formats whose rows each hold a question and the whole document it is about.

Rows with the same text are one document, even where their document ids differ. The files are read
twice: first for the questions, which are kept in memory, then for the texts, which are not.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

from pipeline.core.rows import Document, Question
from stages.corpora.reading.corpus import FileCorpus, Loaded, bad_document, document_or_bad
from stages.corpora.reading.corpus_row import BadInputError, Row, json_text, text_of
from stages.corpora.reading.ids import Ids
from stages.corpora.reading.questions import Asked, Value


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
    asked: Asked
    makes_id: Sequence[str]  # keys of what a question without an id is known by
    document_id: str | None = None  # the key of the document's id; None: the format has none
    entries: Callable[[Value], Sequence[tuple[str, Value]]] | None = None
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
        """Yield one Loaded per text. Raises UsageError where no row can be read."""
        return load_grouped(self, self.layout)


@dataclass(slots=True)
class _Group:
    first: int  # the number of the row whose text is used
    asked: list[Row] = field(default_factory=list)
    by_id: dict[tuple[str, Any], Value] = field(default_factory=dict)


def load_grouped(corpus: FileCorpus, layout: Layout) -> Iterator[Loaded]:
    """Yield one Loaded per text, in the order of its first row, with the questions of all its rows.

    A row without a readable text is a bad_input document of its own; its questions are kept.
    """
    groups: dict[bytes | int, _Group] = {}
    for number, row in enumerate(corpus.rows()):
        group = groups.setdefault(_key(layout, row, number), _Group(number))
        for entry in layout.asked_in(row):
            _add(layout, group, entry)
    document_ids, question_ids = Ids(), Ids()
    by_first = {group.first: group for group in groups.values()}
    for number, row in enumerate(corpus.rows()):
        if number in by_first:
            asked = by_first.pop(number).asked
            document = _document(corpus, layout, row, document_ids)
            made = partial(_question, layout, document.document_id, question_ids)
            yield Loaded(document, tuple(map(made, asked)))


def _key(layout: Layout, row: Row, number: int) -> bytes | int:
    """A hash of the row's text, or the row's number if the text cannot be read."""
    try:
        return hashlib.sha256(layout.text_of(row).text.encode()).digest()
    except BadInputError:
        return number


def _add(layout: Layout, group: _Group, entry: Row) -> None:
    """Add the question to the group, or its references to the same question from another row."""
    value = entry.value or {}
    given = entry.given_id(layout.asked.question_id or "")
    if layout.joined and given:
        first = group.by_id.setdefault((given, value.get("question")), value)
        if first is not value:
            first[layout.joined] += value[layout.joined]
            return
    group.asked.append(entry)


def _document(corpus: FileCorpus, layout: Layout, row: Row, ids: Ids) -> Document:
    try:
        found = layout.text_of(row)
    except BadInputError as error:
        # Not the id in the row: a later row may have a readable text under it.
        return bad_document(ids.of_place(row), row.detail(error))
    return document_or_bad(
        row,
        ids.of_row(row, layout.document_id, found.text),
        lambda _, name: corpus.document(name, found.text, found.title, json_text(found.metadata)),
    )


def _question(layout: Layout, document_id: str, ids: Ids, entry: Row) -> Question:
    value = entry.value or {}
    content = [value.get(key) for key in layout.makes_id]
    found = ids.of_row(entry, layout.asked.question_id, document_id, content)
    return layout.asked.read(entry, document_id, found)
