"""Reader for formats whose rows each hold a question and the whole document it is about.

Rows with the same text are one document, even where their document ids differ. The files are read
twice: first for the questions, which are kept in memory, then for the texts, which are not.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from pipeline.core.rows import Document, Question
from stages.corpora.reading.corpus import Corpus
from stages.corpora.reading.corpus_row import Row
from stages.corpora.reading.ids import Ids
from stages.corpora.reading.loaded import Loaded, bad_document, question_or_bad
from stages.corpora.reading.row_checks import BadInputError, json_text


@dataclass(frozen=True, slots=True)
class Text:
    """The document in a row."""

    text: str
    title: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """Functions that extract the document and its questions from a row. The functions raise
    BadInputError.

    `asked` returns the row's questions without the text: their position in the row (`outputs[3]`,
    or "" for the row itself) and their values. `question` makes a Question from document_id, these
    values and question_id.
    """

    document_id: str | None  # the key of the document's id; null: the format has none
    question_id: str | None
    asks: Sequence[str]  # keys of the question and its options; without an id it is made from them
    text: Callable[[dict[str, Any]], Text]
    asked: Callable[[dict[str, Any]], Sequence[tuple[str, dict[str, Any]]]]
    question: Callable[[str, dict[str, Any], str], Question]
    references: str | None = None  # key of lists to join over rows of equal id and question


def itself(keys: Sequence[str], row: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The `asked` of a format with one question per row: the values under `keys`."""
    return [("", {key: row[key] for key in keys if key in row})]


@dataclass(slots=True)
class _Group:
    first: int  # the number of the row whose text is used
    asked: list[Row] = field(default_factory=list)
    by_id: dict[tuple[str, Any], Row] = field(default_factory=dict)


def load_grouped(
    corpus: Corpus, rows: Callable[[], Iterator[Row]], form: Format
) -> Iterator[Loaded]:
    """Yield one Loaded per text, in the order of its first row, with the questions of all its rows.

    A row without a readable text is a bad_input document of its own; its questions are kept.
    """
    groups: dict[bytes | int, _Group] = {}
    for number, row in enumerate(rows()):
        group = groups.setdefault(_key(form, row, number), _Group(number))
        for entry in _asked(form, row):
            _add(form, group, entry)
    document_ids, question_ids = Ids(), Ids()
    by_first = {group.first: group for group in groups.values()}
    for number, row in enumerate(rows()):
        if number in by_first:
            asked = by_first.pop(number).asked
            document = _document(corpus, form, row, document_ids)
            made = partial(_question, form, document.document_id, question_ids)
            yield Loaded(document, tuple(made(entry) for entry in asked))


def _key(form: Format, row: Row, number: int) -> bytes | int:
    """The hash of the row's text; without a readable text, the number of the row."""
    try:
        return hashlib.sha256(_text(form, row).text.encode()).digest()
    except BadInputError:
        return number


def _text(form: Format, row: Row) -> Text:
    if row.value is None:
        raise BadInputError(row.wrong)
    return form.text(row.value)


def _asked(form: Format, row: Row) -> Iterator[Row]:
    """The row's questions; where they cannot be read, one row that holds the reason."""
    if row.value is None:
        return
    try:
        for inside, value in form.asked(row.value):
            yield replace(row, value=value, inside=inside)
    except BadInputError as wrong:
        yield replace(row, value=None, wrong=str(wrong))


def _add(form: Format, group: _Group, entry: Row) -> None:
    """Add the question to the group, or its references to the same question from another row."""
    if form.references is None or entry.value is None or form.question_id is None:
        group.asked.append(entry)
        return
    given = entry.given_id(form.question_id)
    name = (given or "", entry.value.get("question"))
    if given is None or name not in group.by_id:
        group.by_id[name] = entry
        group.asked.append(entry)
        return
    references = (group.by_id[name].value or {})[form.references]
    references += entry.value[form.references]


def _document(corpus: Corpus, form: Format, row: Row, ids: Ids) -> Document:
    try:
        found = _text(form, row)
    except BadInputError as error:
        # Not the id in the row: a later row may have a readable text under it.
        return bad_document(ids.of_place(row), row.detail(error))
    document_id, wrong = ids.of_row(row, form.document_id, found.text)
    if wrong:
        return bad_document(document_id, row.detail(wrong))
    try:
        return corpus.document(document_id, found.text, found.title, json_text(found.metadata))
    except BadInputError as error:
        return bad_document(document_id, row.detail(error))


def _question(form: Format, document_id: str, ids: Ids, entry: Row) -> Question:
    value = entry.value or {}
    asked = [value.get(key) for key in form.asks]
    found = ids.of_row(entry, form.question_id, document_id, asked)
    return question_or_bad(entry, document_id, found, partial(form.question, document_id))
