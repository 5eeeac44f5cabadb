"""Rows of the user's own JSON, CSV or Parquet files; `corpus.fields` maps their keys.

A row is a document, with a question about it if `fields.question` is set; a document that several
rows contain is read once. Keys that no field names are kept in metadata. A question without an id
has one made from the document's id, question and options.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Annotated, Literal

from pydantic import Field, NonNegativeInt

from pipeline.core.errors import UsageError
from pipeline.core.settings import Settings
from stages.corpora.reading.asked import Asked, Value, one_or_more
from stages.corpora.reading.corpus import FileCorpus, Unhashed
from stages.corpora.reading.corpus_files import files_of, rows_of
from stages.corpora.reading.corpus_row import Row
from stages.corpora.reading.grouped import Layout, Text, load_grouped
from stages.corpora.reading.loaded import Loaded
from stages.corpora.reading.row_checks import (
    BadInputError,
    choice_of,
    label_of,
    metadata_of,
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
        refuse_unnamed(self.fields, self.rows())
        return load_grouped(self, layout_of(self.fields, self.first_option))

    def rows(self) -> Iterator[Row]:
        return rows_of(files_of(self.path, *self.pattern.split("|")))


def layout_of(fields: Fields, first_option: int) -> Layout:
    """The layout of rows with these fields."""
    key, gold = fields.answer_index, fields.references
    return Layout(
        document_id=fields.document_id,
        text=partial(_text, fields),
        entries=None if fields.question else lambda row: (),
        without=tuple(fields.of_documents()),
        makes_id=[fields.question or "", *fields.options],
        asked=Asked(
            question_id=fields.question_id,
            question=fields.question or "",
            options=partial(_options, fields.options),
            right=(lambda row, num: choice_of(row, key, first_option, num) if num else None)
            if key
            else None,
            references=partial(one_or_more, key=gold) if gold else None,
            question_type=fields.question_type,
            metadata=lambda value: metadata_of(value, fields.named()),
            asked_at=fields.asked_at,
        ),
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


def _text(fields: Fields, row: Value) -> Text:
    title = label_of(row, fields.title) if fields.title else None
    about = {} if fields.question else {k: v for k, v in row.items() if k not in fields.named()}
    return Text(text_of(row, fields.text), title or "", about)


def _options(keys: Sequence[str], value: Value) -> tuple[str, ...]:
    if len(keys) < 2:
        return texts_of(value, keys[0]) if keys else ()
    found = tuple(text_of(value, key) for key in keys if value.get(key) is not None)
    if 0 < len(found) < len(keys):
        raise BadInputError(f"{len(found)} of {len(keys)} options; add or delete them")
    return found
