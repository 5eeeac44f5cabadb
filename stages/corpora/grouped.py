"""Formats with a row per question that repeat the document in every row: it is read once.

Rows of the same text are one document, whatever their ids say. The rows are gone through twice:
first for the questions, which are kept, then for the texts, which are not.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from pipeline.rows import Document, Question
from stages.corpora.checks import BadInputError, json_text
from stages.corpora.corpus import Corpus
from stages.corpora.loaded import Loaded, MadeIds, bad_document, document_of, question_or_bad
from stages.corpora.row import Row


@dataclass(frozen=True, slots=True)
class Text:
    """The document that a row holds."""

    text: str
    title: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """How a row is read, by the keys it has there. Its functions raise BadInputError.

    `asked` gives the values of the row's questions, by where they stand in it (`outputs[3]`, or ""
    for the row itself) and without the text; `question` makes one of its document_id, value and
    question_id. `references`: rows of one question and id are one, with all they have under it.
    """

    document_id: str | None  # the key of the document's id; null: the format has none
    question_id: str | None
    text: Callable[[dict[str, Any]], Text]
    asked: Callable[[dict[str, Any]], Sequence[tuple[str, dict[str, Any]]]]
    question: Callable[[str, dict[str, Any], str], Question]
    references: str | None = None


def itself(keys: Sequence[str], row: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """What `asked` gives where the row is one question: what it has under `keys`."""
    return [("", {key: row[key] for key in keys if key in row})]


@dataclass(slots=True)
class _Group:
    first: int  # the number of the row whose text is taken
    asked: list[Row] = field(default_factory=list)
    by_id: dict[tuple[str, Any], Row] = field(default_factory=dict)


def load_grouped(
    corpus: Corpus, rows: Callable[[], Iterator[Row]], form: Format
) -> Iterator[Loaded]:
    """One Loaded a text, in the order of its first row, with the questions of all its rows.

    A row without a readable text is a bad_input document of its own, its questions are kept.
    """
    groups: dict[bytes | int, _Group] = {}
    given: tuple[set[str | None], set[str | None]] = set(), set()
    for number, row in enumerate(rows()):
        group = groups.setdefault(_key(form, row, number), _Group(number))
        for entry in _asked(form, row):
            _add(form, group, entry)
            given[1].add(entry.given_id(form.question_id) if form.question_id else None)
        given[0].add(row.given_id(form.document_id) if form.document_id else None)
    document_ids, question_ids = (MadeIds(ids) for ids in given)
    by_first = {group.first: group for group in groups.values()}
    for number, row in enumerate(rows()):
        if number in by_first:
            asked = by_first.pop(number).asked
            document = _document(corpus, form, row, document_ids)
            made = partial(_question, form, document.document_id, question_ids)
            yield Loaded(document, tuple(made(entry) for entry in asked))


def _key(form: Format, row: Row, number: int) -> bytes | int:
    """The text's hash; the row's own number where there is none."""
    try:
        return hashlib.sha256(_text(form, row).text.encode()).digest()
    except BadInputError:
        return number


def _text(form: Format, row: Row) -> Text:
    if row.value is None:
        raise BadInputError(row.wrong)
    return form.text(row.value)


def _asked(form: Format, row: Row) -> Iterator[Row]:
    """The row's questions; where they cannot be told apart, one that says why."""
    if row.value is None:
        return
    try:
        for inside, value in form.asked(row.value):
            yield replace(row, value=value, inside=inside)
    except BadInputError as wrong:
        yield replace(row, value=None, wrong=str(wrong))


def _add(form: Format, group: _Group, entry: Row) -> None:
    """Put the question into the group, or its references to those of the same question."""
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


def _document(corpus: Corpus, form: Format, row: Row, ids: MadeIds) -> Document:
    text = ""
    try:
        told = _text(form, row)
        text = told.text
        made, wrong = ids.of_row(row, form.document_id, text)
        if wrong:
            return bad_document(made, row.detail(wrong))
        return document_of(corpus, made, text, told.title, json_text(told.metadata))
    except BadInputError as error:
        made, _ = ids.of_row(row, None if text else form.document_id, row.line, row.file.name)
        return bad_document(made, row.detail(error))


def _question(form: Format, document_id: str, ids: MadeIds, entry: Row) -> Question:
    value = entry.value or {}
    made = ids.of_row(entry, form.question_id, document_id, value)
    return question_or_bad(entry, document_id, made, partial(form.question, document_id))
