"""Rows of the user's own JSON, CSV or Parquet files; `corpus.fields` maps their keys.

A row is a document, with a question about it if `fields.question` is set; a document that several
rows contain is read once. Keys that no field names are kept in metadata. A question without an id
has one made from the document's id, question and options.
"""

from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Annotated, Any, Literal

from pydantic import Field, NonNegativeInt

from pipeline.core.errors import UsageError
from pipeline.core.rows import Question
from pipeline.core.settings import Settings
from stages.corpora.reading.corpus import FileCorpus, Unhashed
from stages.corpora.reading.corpus_files import files_of, rows_of
from stages.corpora.reading.corpus_row import Row
from stages.corpora.reading.grouped import Format, Text, load_grouped
from stages.corpora.reading.loaded import Loaded
from stages.corpora.reading.row_checks import (
    BadInputError,
    choice_of,
    label_of,
    metadata_of,
    optional_text,
    question_of,
    text_of,
    texts_of,
)

_FIRST_ROWS = 100  # in which a mapped key must occur at least once
Options = Annotated[tuple[str, ...], Field(strict=False)]  # YAML has lists


class Fields(Settings):
    """The key of a row that holds each field; None: none does."""

    text: str
    document_id: str | None
    title: str | None
    question: str | None
    question_id: str | None
    options: Options  # one key with a list, or a key for each option
    answer_index: str | None  # a number, see `first_option`, or a letter
    references: str | None  # a string or a list of them
    question_type: str | None
    asked_at: str | None

    def of_documents(self) -> set[str]:
        """The keys mapped to fields of the document."""
        return {key for key in (self.text, self.document_id, self.title) if key}

    def named(self) -> set[str]:
        """All keys that are mapped to a field."""
        single = (value for name, value in self if name != "options" and value)
        return {*single, *self.options}


class RecordsCorpus(FileCorpus):
    """A file, or a folder's files that match `pattern`."""

    format: Literal["records"]
    pattern: Annotated[str, Unhashed()]  # patterns of file names, separated by |
    fields: Fields
    first_option: NonNegativeInt  # the number of the first option in `answer_index`

    def load(self) -> Iterator[Loaded]:
        """Yield one Loaded per document. Raises UsageError where no row can be used."""
        rows = partial(rows_of, files_of(self.path, *self.pattern.split("|")))
        refuse_unnamed(self.fields, rows())
        return load_grouped(self, rows, form_of(self.fields, self.first_option))


def form_of(fields: Fields, first_option: int) -> Format:
    """The Format of rows with these fields."""
    return Format(
        document_id=fields.document_id,
        question_id=fields.question_id,
        asks=[fields.question or "", *fields.options],
        text=partial(_text, fields),
        asked=partial(_asked, fields),
        question=partial(_question, fields, first_option),
    )


def refuse_unnamed(fields: Fields, rows: Iterator[Row]) -> None:
    """Raise UsageError where none of the first 100 readable rows has the key of text or question.

    A key that is spelt wrong would make every row bad; this reports it once.
    """
    lacking = {name: key for name in ("text", "question") if (key := getattr(fields, name))}
    known: dict[str, None] = {}  # in order
    where = ""
    for row in islice((row for row in rows if row.value is not None), _FIRST_ROWS):
        where = where or f"{row.file.name}:{row.line}"
        known |= dict.fromkeys(row.value or {})
        if known.keys() >= set(lacking.values()):
            return
    for name, key in lacking.items():
        if where and key not in known:
            raise UsageError(
                f"corpus.fields.{name}={key}: not in {where}, which has {', '.join(known)}"
            )


def _text(fields: Fields, row: dict[str, Any]) -> Text:
    title = label_of(row, fields.title) if fields.title else None
    about = {} if fields.question else {k: v for k, v in row.items() if k not in fields.named()}
    return Text(text_of(row, fields.text), title or "", about)


def _asked(fields: Fields, row: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    if fields.question is None:
        return []
    return [("", {key: row[key] for key in row if key not in fields.of_documents()})]


def _question(
    fields: Fields, first_option: int, document_id: str, value: dict[str, Any], question_id: str
) -> Question:
    assert fields.question
    options = _options(fields, value)
    right = _right(fields, value, first_option, len(options))
    kind, asked_at = fields.question_type, fields.asked_at
    return Question(
        document_id=document_id,
        question_id=question_id,
        question=question_of(value, fields.question),
        options=options,
        references=_references(fields, value) or (() if right is None else (options[right],)),
        answer_index=right,
        question_type=label_of(value, kind) if kind else None,
        asked_at=optional_text(value, asked_at) if asked_at else None,
        metadata=metadata_of(value, fields.named()),
    )


def _options(fields: Fields, value: dict[str, Any]) -> tuple[str, ...]:
    if len(fields.options) < 2:
        return texts_of(value, fields.options[0]) if fields.options else ()
    found = tuple(text_of(value, key) for key in fields.options if value.get(key) is not None)
    if 0 < len(found) < len(fields.options):
        raise BadInputError(f"{len(found)} of {len(fields.options)} options; add or delete them")
    return found


def _right(
    fields: Fields, value: dict[str, Any], first_option: int, num_options: int
) -> int | None:
    key = fields.answer_index
    if key is None or not num_options:
        return None
    return choice_of(value, key, first_option, num_options)


def _references(fields: Fields, value: dict[str, Any]) -> tuple[str, ...]:
    if fields.references is None:
        return ()
    one = value.get(fields.references)
    return (one,) if isinstance(one, str) else texts_of(value, fields.references)
