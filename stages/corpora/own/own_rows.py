"""Rows of the user's own JSON, CSV or Parquet files, whose keys `corpus.fields` maps; and tables of
documents and of questions.

With `corpus.fields`, a row is a document, with a question about it if `fields.question` is set; a
document that several rows contain is read once. Keys that no field names are kept in metadata. A
key may be a path, `answers.text`, into an object or a list of objects. A question without an id
gets one made from the document's id, question and options.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, NonNegativeInt

from pipeline.core.errors import UsageError
from pipeline.core.rows import Document
from pipeline.core.settings import Settings
from stages.corpora.reading import values
from stages.corpora.reading.corpus import FileCorpus, Loaded, document_or_bad
from stages.corpora.reading.files import files_of, one_of, rows_of
from stages.corpora.reading.questions import (
    Layout,
    QuestionFile,
    QuestionLayout,
    Text,
    load_grouped,
)
from stages.corpora.reading.values import BadInputError, Ids, Row, Value

_KEYS_SHOWN = 30  # in a message
Options = Annotated[tuple[str, ...], Field(strict=False)]  # YAML has lists


class Fields(Settings):
    """The key of a row that holds each field, or the path to it; None: none does."""

    text: str
    document_id: str | None
    title: str | None
    question: str | None
    question_id: str | None
    options: Options  # one key with a list, or a key for each option
    answer_index: str | None  # a number, see `first_option`, or a letter
    references: str | None  # a string, number or boolean, or a list of them
    question_type: str | None
    asked_at: str | None

    def named(self) -> dict[str, str]:
        """The name of the field that each key is mapped to."""
        one_key = {key: name for name, key in self if name != "options" and key}
        return {**one_key, **dict.fromkeys(self.options, "options")}


class RecordsCorpus(FileCorpus):
    """A file, or a folder's files that match `pattern` and, if `split` is set, are named after it.
    A row is a document, with a question if `fields` names one."""

    format: Literal["records"]
    fields: Fields
    first_option: NonNegativeInt  # the number of the first option in `answer_index`
    pattern: str  # patterns of file names, separated by |
    unhashed: ClassVar[frozenset[str]] = FileCorpus.unhashed | {"pattern"}

    def check(self) -> None:
        """Raise UsageError where the path is missing, or `split` is set for a single file."""
        if self.split is None or not self.path.is_dir():
            super().check()

    def rows(self) -> Iterator[Row]:
        """The rows of the files, with the value at the end of each path of `fields` under the path
        as its key."""
        every = files_of(self.path, *self.pattern.split("|"))
        files = [file for file in every if self.split in (None, re.split("[-.]", file.name)[0])]
        if not files:
            raise UsageError(f"{self.path}: no {self.split}.* or {self.split}-*; set corpus.split")
        paths = [key for key in self.fields.named() if "." in key]
        for row in rows_of(files):
            for path in paths:
                value, rest = _taken(row.value or {}, path)
                if value is not _NOTHING:
                    row = replace(row, value={**rest, path: value})
            yield row

    def load(self) -> Iterator[Loaded]:
        _refuse_unnamed(self.fields, self.rows())
        fields, index, gold = self.fields, self.fields.answer_index, self.fields.references

        def right(value: Value, num_options: int) -> int | None:
            if not index or not num_options:
                return None
            return values.choice_of(value, index, self.first_option, num_options)

        of_document = [key for key in (fields.text, fields.document_id, fields.title) if key]
        layout = Layout(
            document_id=fields.document_id,
            text=self._text,
            entries=None if fields.question else lambda row: (),
            without=of_document,
            makes_id=[fields.question or "", *fields.options],
            asked=QuestionLayout(
                question_id=fields.question_id,
                question=fields.question or "",
                options=self._options,
                right=right,
                references=(lambda value: values.one_or_more(value, gold)) if gold else None,
                question_type=fields.question_type,
                metadata=lambda value: values.metadata_of(value, fields.named()),
                asked_at=fields.asked_at,
            ),
        )
        return load_grouped(self, layout)

    def _text(self, row: Value) -> Text:
        fields = self.fields
        title = values.label_of(row, fields.title) if fields.title else None
        named = fields.named()
        about = {} if fields.question else {k: v for k, v in row.items() if k not in named}
        return Text(values.text_of(row, fields.text), title or "", about)

    def _options(self, value: Value) -> tuple[str, ...]:
        keys = self.fields.options
        if len(keys) < 2:
            return values.texts_of(value, keys[0]) if keys else ()
        options = tuple(values.text_of(value, key) for key in keys if value.get(key) is not None)
        if 0 < len(options) < len(keys):
            raise BadInputError(f"{len(options)} of {len(keys)} options; add or delete them")
        return options


def _refuse_unnamed(fields: Fields, rows: Iterator[Row]) -> None:
    """Raise UsageError where no row has one of the keys: a misspelt key would make every row bad,
    or its field empty."""
    lacking, keys = fields.named(), dict[str, None]()  # the keys of all rows, in order
    file = ""
    for row in rows:
        file = row.file.name
        keys |= dict.fromkeys(row.value or {})
        lacking = {key: name for key, name in lacking.items() if key not in keys}
        if not lacking:
            return
    for key, name in lacking.items() if keys else ():
        has = ", ".join([*keys][:_KEYS_SHOWN])
        raise UsageError(f"corpus.fields.{name}={key}: not in {file}, which has {has}")


_NOTHING = object()


def _taken(value: Any, path: str) -> tuple[Any, Any]:
    """The value at the path's end, and the rest of `value` without it; _NOTHING and all of `value`
    where nothing is there. Of a list it is the list of what its objects have there."""
    if isinstance(value, list):
        pairs = [_taken(entry, path) for entry in value]
        inner = [entry for entry, _ in pairs if entry is not _NOTHING]
        flat = [text for entry in inner for text in (entry if isinstance(entry, list) else [entry])]
        texts = [text for text in flat if text is not None]
        return texts if inner else _NOTHING, [rest for _, rest in pairs if rest != {}]
    if not isinstance(value, dict):
        return _NOTHING, value
    key, _, path = (path, "", "") if path in value else path.partition(".")
    entry, rest = value.get(key, _NOTHING), None
    if path:
        entry, rest = _taken(entry, path)
    if entry is _NOTHING:
        return _NOTHING, value
    without = {name: inner for name, inner in value.items() if name != key}
    return entry, {**value, key: rest} if rest else without


_COLUMNS = frozenset({"document_id", "title", "text", "metadata"})


class TablesCorpus(FileCorpus):
    """A folder with documents.jsonl or documents.parquet and questions.jsonl or questions.parquet;
    one table may be JSON lines and the other Parquet.

    Documents have `text`; optional are document_id, title and metadata (an object or JSON text);
    other columns are kept in metadata. The questions are read as reading/questions.py describes.
    """

    format: Literal["tables"]

    def load(self) -> Iterator[Loaded]:
        """Yield one Loaded per document, in file order, then the questions without a document.
        Where an id is used twice, the second document is bad_input and the first has the questions.
        Raises UsageError where documents are missing, or a table is unreadable or exists twice."""
        documents = one_of(self.path, "documents", "jsonl", "parquet")
        if documents is None:
            why = "no documents.jsonl or documents.parquet here; set corpus.path=..."
            raise UsageError(f"{self.path}: {why}")
        file = one_of(self.path, "questions", "jsonl", "parquet")
        questions = QuestionFile(rows_of([file]) if file else ())
        ids = Ids()
        for row in rows_of([documents]):
            value = row.value or {}
            given = ids.of_row(row, "document_id", value.get("title"), value.get("text"))
            document = document_or_bad(row, given, self._document)
            yield Loaded(document, () if given[1] else questions.take(document))
        yield from questions.take_rest(ids)

    def _document(self, value: Value, document_id: str) -> Document:
        text, title = values.text_of(value, "text"), values.label_of(value, "title") or ""
        return self.document(document_id, text, title, values.metadata_of(value, _COLUMNS))
